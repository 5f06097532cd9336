"""Hooks of a pack: rules or functions of installed Python packages that run at fixed points. Pure models."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from newton.content.yaml_models import StrictModel

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
    """A relation between two entities, which a hook has extracted from an event."""

    source: EntityName
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]{0,59}$")]
    target: EntityName


class HookEffect(StrictModel):
    """The effect of a hook: what Newton does because of it."""

    drop: bool = Field(default=False, description="The event is not stored.")
    lines: tuple[Line, ...] = Field(default=(), max_length=MAX_LINES, description="Lines added to the context.")
    frame: str | None = Field(default=None, description="The frame of the context, unless the caller names one.")
    relations: tuple[HookRelation, ...] = Field(default=(), max_length=50, description="Relations to store.")
    note: Line | None = Field(default=None, description="A text that is only shown with the context.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the effects that are set."""
        return tuple(name for name in type(self).model_fields if getattr(self, name))


class PackHook(StrictModel):
    """A rule with its effect, or a function that returns the effect."""

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
    """Raise ValueError if the effect is not possible at this point."""
    possible = HOOK_EFFECTS[point]
    for name in effect.names if effect else ():
        if name not in possible:
            raise ValueError(f"has the effect `{name}`; at {point} only {', '.join(possible)} are possible")
