"""Packs: presets for a kind of work (coding, support, research), which change frames, budget and scoring."""

from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, model_validator

from newton.content.default_layer_shares import BudgetSplit
from newton.content.frames import PACK_FILE, Frame, load_frames, overlay_frames
from newton.content.pack_hooks import MAX_HOOKS, PackHook
from newton.content.package_data import data_folder
from newton.content.profiles import FeatureWeights, Profile, get_profile
from newton.content.yaml_models import NamedModel, StrictModel, check_name, get_by_name, list_folder, validate_model
from newton.content.yaml_source import load_yaml
from newton.errors import ConfigError

MAX_QUESTIONS = 4
PACKS_FOLDER = "packs"  # in a folder of frames

Weight = Annotated[float, Field(ge=0, le=1)]
TypeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,59}$")]


class WeightEmphasis(StrictModel):
    """The weights of recency, relevance and salience (how often and recently an entity is mentioned), from 0 to 1."""

    recency: Weight
    relevance: Weight
    salience: Weight


class FramePack(NamedModel):
    """A preset for a kind of work, which changes all frames."""

    label: ClassVar[str] = "pack"  # the noun in error texts

    description: str = Field(
        min_length=1, max_length=500, description="One sentence that says for which work the pack is meant."
    )
    profile: str = Field(default="newton", description="The name of the profile that scores memories.")
    weights: WeightEmphasis | None = Field(
        default=None,
        description="Weights from 0 to 1 of the parts of a memory's score; they replace those of the profile.",
    )
    budget: BudgetSplit = Field(
        description="Percent of a context's tokens for `recent`, `semantic`, `entity` and `patterns`, 100 in total."
    )
    depth: int | None = Field(
        default=None,
        ge=0,
        le=5,
        description="Number of steps along relations from the entities in the input. Default: that of the profile.",
    )
    failures: bool | None = Field(
        default=None,
        description="Whether memories of failures may be in the context. Default: as in the profile.",
    )
    events: tuple[TypeName, ...] = Field(
        default=(), description="The types of events that come first when more are found than the profile takes."
    )
    entities: tuple[TypeName, ...] = Field(
        default=(), description="The types of entities that come first among those that the input does not name."
    )
    relations: tuple[TypeName, ...] = Field(
        default=(), description="The types of relations that come first at each step from the entities in the input."
    )
    questions: tuple[str, ...] = Field(default=(), max_length=2, description="Questions added to those of a frame.")
    hooks: tuple[PackHook, ...] = Field(
        default=(), max_length=MAX_HOOKS, description="Rules and functions that run at fixed points."
    )

    @model_validator(mode="after")
    def _check_hook_names(self) -> "FramePack":
        if len({hook.name for hook in self.hooks}) < len(self.hooks):
            raise ValueError("has two hooks of one name")
        return self


class FrameSet(NamedTuple):
    """The frames and profiles in use, and the pack that changed them, if any."""

    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    pack: FramePack | None = None


def load_frame_set(profiles: dict[str, Profile], extra: Path | None = None, pack: str | None = None) -> FrameSet:
    """Load the shipped frames, change them by the pack, then add the pack's own frames and those of the folder `extra`.

    Raises ConfigError with file and line of a mistake, and NotFoundError for an unknown pack or profile.
    """
    if pack is None:
        return FrameSet(load_frames(extra, profiles), profiles)
    chosen = _read_pack(get_by_name(_find_pack_folders(extra), pack, "pack"))
    profiles = profiles | _build_pack_profile(chosen, profiles)
    frames = {name: _apply_pack(frame, chosen) for name, frame in load_frames(None, profiles).items()}
    frames = overlay_frames(frames, _find_pack_folders(extra)[pack], profiles)
    return FrameSet(overlay_frames(frames, extra.expanduser(), profiles) if extra else frames, profiles, chosen)


class PackSet(NamedTuple):
    """Packs by name, and why others cannot be read."""

    packs: dict[str, FramePack]
    errors: list[ConfigError]


def load_packs(extra: Path | None = None) -> PackSet:
    """Load the packs that ship with Newton; a pack in the folder `extra` replaces the one of the same name."""
    found = PackSet({}, [])
    for name, folder in _find_pack_folders(extra).items():
        try:
            found.packs[name] = _read_pack(folder)
        except ConfigError as error:
            found.errors.append(error)
    return found


def _find_pack_folders(extra: Path | None) -> dict[str, Path]:
    homes = [home / PACKS_FOLDER for home in (data_folder("frames"), extra and extra.expanduser()) if home]
    folders = [path for home in homes if home.is_dir() for path in list_folder(home)]
    return {path.name: path for path in folders if (path / PACK_FILE).is_file()}


def _read_pack(folder: Path) -> FramePack:
    document = load_yaml(folder / PACK_FILE)
    return check_name(document, validate_model(document, FramePack), folder.name, "folder")


def _apply_pack(frame: Frame, pack: FramePack) -> Frame:
    questions = (*frame.questions, *pack.questions)[:MAX_QUESTIONS]
    shares = pack.budget.to_layer_shares(frame.budget)
    return frame.model_copy(update={"questions": questions, "profile": pack.name, "budget": shares})


def _build_pack_profile(pack: FramePack, profiles: dict[str, Profile]) -> dict[str, Profile]:
    """Return the profile that the pack names, with the pack's name, weights, reach and types.

    Raises ConfigError for a profile that only selects others.
    """
    base, own = get_profile(profiles, pack.profile), pack.weights
    if base.by_frame:
        what = f"The pack {pack.name!r} has the profile {base.name!r}, which selects other profiles."
        raise ConfigError(what, hint="Name a profile that scores memories itself, such as evidence.")
    reach = {"depth": pack.depth, "failures": pack.failures}
    types = {"event_types": pack.events, "entity_types": pack.entities, "relation_types": pack.relations}
    changes = {name: value for name, value in (reach | types).items() if value is not None}
    update: dict[str, object] = {"name": pack.name, "reach": base.reach.model_copy(update=changes)}
    if own:
        update["weights"] = FeatureWeights(recency=own.recency, similarity=own.relevance, salience=own.salience)
    return {pack.name: base.model_copy(update=update)}
