"""Lists of memories and entities as JSON models, for HTTP, the tools and the command line."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID

from pydantic import Field

from newton.agent.memory_inputs import ListMemoriesInput
from newton.memory.inventory.memory_list import ListedMemory, ListOrder, ListPosition
from newton.memory.memory import Kind, Outcome, Trust
from newton.operations.cursors import decode_cursor, encode_cursor, invalid_cursor_error
from newton.runtime.tools.views import ViewModel
from newton.runtime.wiring import AgentServices

MemoryField = Literal[
    "memory_id",
    "kind",
    "state",
    "quarantined",
    "text",
    "micro",
    "subject",
    "attribute",
    "importance",
    "is_importance_set",
    "is_core",
    "confidence",
    "outcome",
    "confirmations",
    "uses",
    "trust",
    "origin",
    "session",
    "ref",
    "occurred_at",
    "created_at",
    "accessed_at",
    "confirmed_at",
]
MEMORY_FIELDS: tuple[MemoryField, ...] = get_args(MemoryField)
SEPARATOR = "|"  # of the parts of a cursor


class MemoryListItem(ViewModel):
    """A memory in a list. It has the fields that the request selects; by default all."""

    memory_id: UUID | None = None
    kind: Kind | None = None
    state: str | None = Field(None, examples=["CONFIRMED"])
    quarantined: bool | None = Field(
        None, description="Whether the memory is left out of searches until it is confirmed."
    )
    text: str | None = Field(None, description="The text on one line. A long text is replaced by its summary.")
    micro: str | None = Field(None, description="The text in about 20 tokens.")
    subject: str | None = None
    attribute: str | None = None
    importance: float | None = Field(
        None, description="From 0 to 10: set by a person, or else computed by Newton.", examples=[2]
    )
    is_importance_set: bool | None = Field(None, description="Whether a person set the importance.")
    is_core: bool | None = Field(
        None, description="Whether the memory is a core fact, which only a person may supersede."
    )
    confidence: float | None = None
    outcome: Outcome | None = None
    confirmations: int | None = None
    uses: int | None = Field(None, description="How often the memory was in a context or a search result.")
    trust: Trust | None = None
    origin: str | None = Field(None, examples=["cli"])
    session: str | None = Field(None, description="The session from which the memory comes.")
    ref: str | None = None
    occurred_at: datetime | None = None
    created_at: datetime | None = None
    accessed_at: datetime | None = None
    confirmed_at: datetime | None = None


class MemoryListResponse(ViewModel):
    """One page of a list of memories. `next` is the cursor for the next page; it is null on the last page."""

    items: list[MemoryListItem]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])
    count: int | None = Field(
        None, description="The number of all memories that the filters select; null after the first page."
    )


async def list_memories(
    newton: AgentServices, origin: str, query: ListMemoriesInput, *, fields: Sequence[MemoryField] = ()
) -> MemoryListResponse:
    """Return one page of a list of memories. Raises InputError for an invalid cursor.

    `fields` selects the fields of each memory; if empty, all are returned.
    """
    ordered = ListOrder(query.sort, query.order)
    page = await newton.memory_lists(origin).list_memories(
        query, ordered, after=_decode_position(query.cursor, ordered), limit=query.limit
    )
    items = [to_list_item(one, fields) for one in page.memories]
    following = _encode_position(page.following, ordered) if page.following else None
    return MemoryListResponse(items=items, next=following, count=page.total)


def to_list_item(memory: ListedMemory, fields: Sequence[MemoryField] = ()) -> MemoryListItem:
    """Return a memory as a list item with the selected fields, or with all fields if `fields` is empty."""
    values = {name: memory.summary if name == "text" else getattr(memory, name) for name in fields or MEMORY_FIELDS}
    return MemoryListItem.model_validate(values)


def _encode_position(position: ListPosition, ordered: ListOrder) -> str:
    return encode_cursor(SEPARATOR.join((*ordered, position.key, position.memory_id.hex)))


def _decode_position(cursor: str | None, ordered: ListOrder) -> ListPosition | None:
    if cursor is None:
        return None
    try:
        sort, order, key, memory_id = decode_cursor(cursor).split(SEPARATOR)
        position = ListPosition(key, UUID(memory_id))
    except ValueError:
        raise invalid_cursor_error() from None
    if (sort, order) != ordered:
        raise invalid_cursor_error()
    return position
