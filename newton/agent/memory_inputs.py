"""Inputs that select, list and edit stored memories, shared by the HTTP API, MCP and the command line."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.field_types import CleanText, Importance, Name, Ref, Timestamp
from newton.agent.inputs import ToolInput
from newton.memory.inventory.memory_list import SortKey, SortOrder
from newton.memory.memory import Kind, Trust

MAX_LIST_LIMIT = 200
BulkAction = Literal["forget", "retract", "set_importance", "set_core"]

# Fields that no edit may change, with the remedy.
FIXED_FIELDS = {
    "content": "A text is never edited; `supersede` replaces the fact by a new one.",
    "text": "A text is never edited; `supersede` replaces the fact by a new one.",
    "full_text": "A text is never edited; `supersede` replaces the fact by a new one.",
    "attribute": "The attribute is part of the statement; `supersede` or `retract` the fact and store it again.",
    "kind": "The kind is fixed; store the memory again as the other kind.",
    "state": "The state follows from evidence; use `confirm`, `retract` or `supersede`.",
    "quarantined": "A person's `confirm` ends the quarantine.",
    "outcome": "`set_outcome` sets the outcome of an episode, `review` that of a decision.",
    "confidence": "The confidence is kept as first stated; `supersede` the fact by one with another confidence.",
    "trust": "Trust is set by the interface through which the memory came, and never changes.",
    "origin": "The origin is set by the interface through which the memory came, and never changes.",
}


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


class ListMemoriesInput(MemoryFilterInput):
    """List the stored memories, newest first, with filters. To find memories that answer a question, use `recall`."""

    sort: SortKey = Field("created", description="The time or number by which the memories are sorted.")
    order: SortOrder = Field("desc", description="desc: newest or highest first; asc: oldest or lowest first.")
    limit: int = Field(20, ge=1, le=MAX_LIST_LIMIT, description="Maximum number of memories.")
    cursor: str | None = Field(
        None,
        max_length=500,
        description="The cursor of the page: `next` of the previous page, whose filters must be the same.",
    )


class EditMemoryInput(ToolInput):
    """The new values of the editable fields of a memory. A field that is omitted stays unchanged."""

    importance: Importance | None = Field(
        None, description="Importance from 0 to 10, in place of the computed one; null computes it again.", examples=[8]
    )
    core: bool = Field(default=False, description="Whether the fact is marked as core.")
    subject: Name | None = Field(
        None, description="The person or thing that the fact is about; null removes the subject."
    )

    @model_validator(mode="before")
    @classmethod
    def _reject_fixed_fields(cls, data: Any) -> Any:
        names = list(cast("Mapping[str, object]", data)) if isinstance(data, Mapping) else list[str]()
        for name in names:
            if remedy := FIXED_FIELDS.get(name):
                message = "{name} cannot be edited: {remedy}"
                raise PydanticCustomError("fixed", message, {"name": name, "remedy": remedy.rstrip(".")})
        return cast("object", data)

    @model_validator(mode="after")
    def _require_field(self) -> "EditMemoryInput":
        if not self.model_fields_set:
            raise PydanticCustomError("empty", "no field to edit is given; give importance, core or subject", {})
        return self


class BulkChangeInput(ToolInput):
    """A change of all memories that a filter selects. A call without a token returns a preview and a token; a call with
    that token makes the change."""

    action: BulkAction = Field(description="The change to make to each memory.")
    filter: MemoryFilterInput = Field(description="The memories to change; at least one condition is required.")
    importance: Importance | None = Field(
        None, description="For set_importance: a number from 0 to 10; null computes the importance again."
    )
    core: bool = Field(default=True, description="For set_core: whether the facts are marked as core.")
    include_derived: bool = Field(
        default=False, description="For forget: also delete the memories derived from the selected ones."
    )
    reason: CleanText = Field("requested", max_length=500, description="For forget: the reason, which stays stored.")
    token: str | None = Field(
        None,
        max_length=100,
        description="The token of the preview. It confirms the change of exactly the previewed memories.",
    )
