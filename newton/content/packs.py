"""Packs: presets for a kind of work (coding, support), which change frames, budget and scoring, and add hooks."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, model_validator

from newton.content.frames import PACK_FILE, BudgetSplit, Frame, load_frames, overlay_frames
from newton.content.package_data import data_folder
from newton.content.profiles import FeatureWeights, Profile, get_profile
from newton.content.yaml_files import (
    NamedModel,
    StrictModel,
    check_name,
    get_by_name,
    list_folder,
    load_yaml,
    validate_model,
)
from newton.errors import ConfigError

HookPoint = Literal[
    "before_record", "after_record", "before_assembly", "after_assembly", "session_start", "session_end"
]

ENTRY_POINT_GROUP = "newton.hooks"
MAX_HOOKS = 20  # of a pack
MAX_LINES = 5  # that one hook adds to a context

# The values that a hook sees at each point; all of them are texts, except `tokens` and `items`, which are numbers.
HOOK_VALUES: dict[HookPoint, tuple[str, ...]] = {
    "before_record": ("type", "text"),
    "after_record": ("type", "text"),
    "before_assembly": ("input", "frame"),
    "after_assembly": ("input", "frame", "context", "tokens", "items"),
    "session_start": ("session",),
    "session_end": ("session",),
}
# The effects that are possible at each point.
HOOK_EFFECTS: dict[HookPoint, tuple[str, ...]] = {
    "before_record": ("drop", "note"),
    "after_record": ("relations", "note"),
    "before_assembly": ("lines", "frame", "note"),
    "after_assembly": ("note",),
    "session_start": ("note",),
    "session_end": ("note",),
}

Line = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^\S[^\r\n]*$")]
HookName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,59}$")]
EntityName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]


class HookRelation(StrictModel):
    """A relation between two entities that a hook (a function or rule of a pack) has found in an event."""

    source: EntityName
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,59}$")]
    target: EntityName


class HookEffect(StrictModel):
    """What Newton does because of a hook (a function or rule of a pack). A field that is not set has no effect."""

    drop: bool = Field(default=False, description="The event is not stored.")
    lines: tuple[Line, ...] = Field(default=(), max_length=MAX_LINES, description="Lines added to the context.")
    frame: str | None = Field(default=None, description="The frame of the context, unless the caller names one.")
    relations: tuple[HookRelation, ...] = Field(default=(), max_length=50, description="Relations to store.")
    note: Line | None = Field(default=None, description="A text that is only shown with the context.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the fields that are set."""
        return tuple(name for name in type(self).model_fields if getattr(self, name))


class PackHook(StrictModel):
    """A hook of a pack: either a `rule` with its `effect`, or a function (`entry_point`) that returns the effect."""

    name: HookName
    at: HookPoint = Field(description="The point at which the hook runs.")
    types: tuple[str, ...] = Field(default=(), description="The types of events; empty for all.")
    rule: str | None = Field(default=None, description="A CEL expression: if it is true, the effect takes place.")
    effect: HookEffect | None = Field(default=None, description="The effect of the rule.")
    entry_point: str | None = Field(
        default=None, description=f"The name of a function in the entry points `{ENTRY_POINT_GROUP}`."
    )
    timeout_ms: int = Field(default=200, ge=1, le=5_000, description="The deadline of the hook.")

    @model_validator(mode="after")
    def _check_kind(self) -> "PackHook":
        if (self.rule is None) == (self.entry_point is None):
            raise ValueError("needs either a `rule` or an `entry_point`")
        if (self.rule is None) != (self.effect is None):
            raise ValueError("needs an `effect` exactly if it has a `rule`")
        if self.types and self.at not in ("before_record", "after_record"):
            raise ValueError("has `types`, which only hooks of events can have")
        check_effect(self.effect, self.at)
        return self


def check_effect(effect: HookEffect | None, point: HookPoint) -> None:
    """Raise ValueError if a hook at this point cannot have this effect."""
    possible = HOOK_EFFECTS[point]
    for name in effect.names if effect else ():
        if name not in possible:
            raise ValueError(f"has the effect `{name}`; at {point} only {', '.join(possible)} are possible")


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
    """A preset for a kind of work, such as coding, which changes all frames (kinds of input)."""

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
    """The frames and profiles in use, and the pack (preset for a kind of work) that changed them; None without one."""

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
    """Packs by name, and the errors of those that cannot be read."""

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
    """Return the profile that the pack uses, as a dict with the pack's name as key.

    It is the profile that the pack names, with the pack's weights, number of relation steps and preferred types. Raises
    ConfigError for a profile that only selects others by frame.
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
