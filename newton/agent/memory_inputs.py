"""The input that selects stored memories."""

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.inputs import ToolInput
from newton.memory.memory import Kind, Trust


class MemoryFilterInput(ToolInput):
    """The conditions on the memories to select. An omitted field sets no condition, except that `states` and `kinds`
    have defaults."""

    kinds: tuple[Kind, ...] = Field(
        (), description="Only memories of these kinds. Default: all but procedures, entities, relations and artifacts."
    )
    states: tuple[str, ...] = Field(
        (),
        max_length=20,
        description="Only memories in these states, such as NEW or CORE, or in a group: current (valid now; the "
        "default), past (superseded, retracted, retired, archived), quarantined, all.",
    )
    subject: Name | None = Field(None, description="Only facts about this person or thing.")
    text: CleanText | None = Field(None, max_length=500, description="Only memories that contain all these words.")
    session: Ref | None = Field(None, description="Only messages of this session, and memories derived from them.")
    source: str | None = Field(None, max_length=64, description="Only memories derived from the memory with this id.")
    origins: tuple[Name, ...] = Field(
        (), max_length=20, description="Only memories that came through these interfaces, such as cli, http, import."
    )
    trusts: tuple[Trust, ...] = Field((), description="Only memories of authors with these trust tiers.")
    since: Timestamp | None = Field(None, description="Only memories of what occurred at or after this time.")
    until: Timestamp | None = Field(None, description="Only memories of what occurred before this time.")
    created_since: Timestamp | None = Field(None, description="Only memories stored at or after this time.")
    created_until: Timestamp | None = Field(None, description="Only memories stored before this time.")

    @property
    def is_empty(self) -> bool:
        """Return whether the filter has no condition."""
        return not any(getattr(self, name) for name in MemoryFilterInput.model_fields)
