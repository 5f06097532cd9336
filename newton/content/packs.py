"""Packs: a kind of work (coding, support, research) as a folder that leans frames, budget and scoring towards it."""

from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, model_validator

from newton.content.frames import PACK_FILE, Frame, LayerShares, load_frames, overlay_frames
from newton.content.package_data import data_folder
from newton.content.profiles import FeatureWeights, Profile, get_profile
from newton.content.yaml_models import NamedModel, StrictModel, get_by_name, list_folder, validate_model
from newton.content.yaml_source import load_yaml

MAX_QUESTIONS = 4
PACKS_FOLDER = "packs"  # within a folder of frames
SHARE_UNITS = 1_000  # shares are whole numbers: so fine is a percentage split

Percent = Annotated[int, Field(ge=0, le=100)]
Weight = Annotated[float, Field(ge=0, le=1)]
TypeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,59}$")]


class WeightEmphasis(StrictModel):
    """What recency, relevance and salience count; only the relation between them matters."""

    recency: Weight
    relevance: Weight
    salience: Weight


class BudgetSplit(StrictModel):
    """How the flexible part of a context is split, in percent by where memories come from."""

    recent: Percent = Field(description="What happened lately.")
    semantic: Percent = Field(description="What means the same, whatever its kind.")
    entity: Percent = Field(description="What is known of who and what is spoken of.")
    patterns: Percent = Field(description="How things are done.")

    @model_validator(mode="after")
    def _is_all(self) -> "BudgetSplit":
        if (whole := self.recent + self.semantic + self.entity + self.patterns) != 100:
            raise ValueError(f"must add up to 100, not {whole}")
        return self


class FramePack(NamedModel):
    """A kind of work, and how it adjusts the frames."""

    label: ClassVar[str] = "pack"  # what error texts call it

    description: str = Field(min_length=1, max_length=500, description="One sentence: the work it is for.")
    profile: str = Field(default="newton", description="The name of a profile: how memories are scored.")
    weights: WeightEmphasis | None = Field(
        default=None, description="Recency, relevance and salience from 0 to 1, in place of the profile's weights."
    )
    budget: BudgetSplit = Field(description="Percent for recent, semantic, entity and patterns; 100 in all.")
    depth: int = Field(default=1, ge=0, le=5, description="Steps along relations from what is spoken of.")
    failures: bool = Field(default=True, description="Whether what failed is shown.")
    events: tuple[TypeName, ...] = Field(default=(), description="Types of events that matter.")
    entities: tuple[TypeName, ...] = Field(default=(), description="Types of entities that matter.")
    relations: tuple[TypeName, ...] = Field(default=(), description="Types of relations that matter.")
    questions: tuple[str, ...] = Field(default=(), max_length=2, description="Asked besides those of a frame.")

    def to_layer_shares(self, frame: Frame) -> LayerShares:
        """Shares of the flexible layers: recent goes to episodes, entity to facts, patterns to procedures.

        What means the same is found among decisions and facts, so that part is theirs, in the frame's own proportion.
        """
        own, unit = frame.budget, SHARE_UNITS // 100
        both = own.decisions + own.facts
        decisions = round(self.budget.semantic * unit * (own.decisions / both if both else 0.5))
        return LayerShares(
            decisions=decisions,
            facts=(self.budget.semantic + self.budget.entity) * unit - decisions,
            procedures=self.budget.patterns * unit,
            episodes=self.budget.recent * unit,
        )


class FrameSet(NamedTuple):
    """The frames and profiles that hold, with the pack that leans them, if there is one."""

    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    pack: FramePack | None = None


def load_frame_set(profiles: dict[str, Profile], extra: Path | None = None, pack: str | None = None) -> FrameSet:
    """What ships, leaned by the pack of that name, overlaid by the pack's frames and then by a person's own folder.

    Raises ConfigError naming file and line for a mistake, and NotFoundError for an unknown pack or profile.
    """
    if pack is None:
        return FrameSet(load_frames(extra, profiles), profiles)
    chosen = get_by_name(load_packs(extra), pack, "pack")
    profiles = profiles | _build_pack_profile(chosen, profiles)
    frames = {name: _apply_pack(frame, chosen) for name, frame in load_frames(None, profiles).items()}
    frames = overlay_frames(frames, _find_pack_folders(extra)[pack], profiles)
    return FrameSet(overlay_frames(frames, extra.expanduser(), profiles) if extra else frames, profiles, chosen)


def load_packs(extra: Path | None = None) -> dict[str, FramePack]:
    """The packs that ship with Newton and those of a person's own folder, where the same name wins."""
    return {name: _read_pack(folder) for name, folder in _find_pack_folders(extra).items()}


def _find_pack_folders(extra: Path | None) -> dict[str, Path]:
    homes = [home / PACKS_FOLDER for home in (data_folder("frames"), extra and extra.expanduser()) if home]
    return {
        path.name: path for home in homes if home.is_dir() for path in list_folder(home) if (path / PACK_FILE).is_file()
    }


def _read_pack(folder: Path) -> FramePack:
    document = load_yaml(folder / PACK_FILE)
    made = validate_model(document, FramePack)
    if made.name != folder.name:
        what = f"the pack is named {made.name!r} but its folder {folder.name!r}."
        raise document.error(("name",), what, "Rename one of them.")
    return made


def _apply_pack(frame: Frame, pack: FramePack) -> Frame:
    questions = (*frame.questions, *pack.questions)[:MAX_QUESTIONS]
    profile = pack.name if pack.weights else pack.profile
    return frame.model_copy(update={"questions": questions, "profile": profile, "budget": pack.to_layer_shares(frame)})


def _build_pack_profile(pack: FramePack, profiles: dict[str, Profile]) -> dict[str, Profile]:
    """The profile that the pack's own weights make of the one it names; none when it gives no weights."""
    base, own = get_profile(profiles, pack.profile), pack.weights
    if own is None:
        return {}
    weights = FeatureWeights(recency=own.recency, similarity=own.relevance, salience=own.salience)
    return {pack.name: base.model_copy(update={"name": pack.name, "weights": weights})}
