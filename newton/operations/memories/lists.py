"""The operation that lists the stored memories."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.inventory.memory_lists import MemoryFilterInput
from newton.content.yaml_files import did_you_mean
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.memory.memory import PERSON_TIERS
from newton.memory.memory_list import ListedMemory, ListOrder, ListPosition, SortKey, SortOrder
from newton.memory.representations import one_line
from newton.operations.cursors import decode_cursor, encode_cursor, invalid_cursor_error
from newton.operations.declaration import EACH_FIELD, operation
from newton.operations.fields import CommandOption, Cursor, Limit
from newton.operations.results import CountedPage, SelectedFields
from newton.operations.text_format import pluralize, truncate

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

NO_CONDITIONS = MemoryFilterInput.model_validate({})
MEMORY_FIELDS = tuple(one.name for one in fields(ListedMemory))
# The fields that a model needs.
MODEL_FIELDS = ("memory_id", "kind", "state", "quarantined", "text", "subject", "importance", "trust", "occurred_at")
SEPARATOR = "|"  # of the parts of a cursor
MIN_TEXT_WIDTH = 30  # columns that the text keeps in a narrow terminal
ORDER_NAMES = {
    "created": ("oldest first", "newest first"),
    "occurred": ("earliest first", "latest first"),
    "accessed": ("longest unused first", "last used first"),
    "confirmed": ("longest unconfirmed first", "last confirmed first"),
    "importance": ("least important first", "most important first"),
    "uses": ("least used first", "most used first"),
}
# The time that the table shows, and its column; for any other order, when it occurred.
SHOWN_TIMES = {
    "created": ("created_at", "stored"),
    "accessed": ("accessed_at", "used"),
    "confirmed": ("confirmed_at", "confirmed"),
}
OCCURRED = ("occurred_at", "occurred")


class MemoryListPage(CountedPage[ListedMemory], SelectedFields):
    """One page of a list of memories, and how the list is sorted. `next` is null on the last page."""

    sort: SortKey
    order: SortOrder


def format_table(page: MemoryListPage, columns: int | None) -> str:
    """Format one page of memories as a table of at most `columns` columns; None for any width."""
    time, column = SHOWN_TIMES.get(page.sort, OCCURRED)
    if all(getattr(item, time) is None for item in page.items):
        time, column = OCCURRED
    rows = [_to_row(item, time) for item in page.items]
    head = ("id", "kind", "state", column, "importance", "text")
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head) - 1)]
    used = sum(widths) + 2 * len(widths)
    room = None if columns is None else max(columns - used, MIN_TEXT_WIDTH)
    total = "" if page.count is None else f"{pluralize(page.count, 'memory', 'memories')}, "
    shown = f", the first {len(rows)}" if page.count and page.count > len(rows) else ""
    note = "  (* importance set by a person)" if any(item.is_importance_set for item in page.items) else ""
    heading = f"{total}{ORDER_NAMES[page.sort][page.order == 'desc']}{shown}{note}"
    return "\n".join([heading, *(_format_row(row, widths, room) for row in [head, *rows])])


def _to_row(item: ListedMemory, time: str) -> tuple[str, ...]:
    at: datetime | None = getattr(item, time)
    state = f"{item.state}, quarantined" if item.quarantined else item.state
    mark = "*" if item.is_importance_set else ""
    about = f"[{item.subject}] " if item.subject and item.subject.casefold() not in item.text.casefold() else ""
    date = f"{at:%Y-%m-%d}" if at else "never"
    text = item.text.removeprefix(f"[{date}] ")
    return (short_id(item.memory_id), item.kind, state, date, f"{item.importance:g}{mark}", f"{about}{one_line(text)}")


def _format_row(row: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    text = row[-1] if room is None else truncate(row[-1], room)
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, text]).rstrip()


@operation(
    "GET /v1/memories",
    "reads",
    command="list",
    table=format_table,
    empty="No memory is listed. `newton list --state all` also lists superseded, retracted and quarantined memories;"
    ' `newton remember "…"` stores a fact.',
)
async def list_memories(
    caller: "OperationCaller",
    filters: Annotated[MemoryFilterInput, EACH_FIELD] = NO_CONDITIONS,
    *,
    sort: Annotated[SortKey, Field(description="The time or number by which the memories are sorted.")] = "created",
    order: Annotated[
        SortOrder, Field(description="desc: newest or highest first; asc: oldest or lowest first.")
    ] = "desc",
    fields: Annotated[
        tuple[str, ...],
        CommandOption("field"),
        Field(description="The fields of each memory in the result as JSON. Default: all, for a model the main ones."),
    ] = (),
    limit: Limit = 30,
    cursor: Cursor = None,
) -> MemoryListPage:
    """List the stored memories, newest first, with filters. To find memories that answer a question, use `recall`.

    Quarantined, superseded and retracted memories are listed only if `states` selects them.

    Example: newton list --kind fact --text crate --sort importance
    """
    if unknown := [one for one in fields if one not in MEMORY_FIELDS]:
        hint = f"{did_you_mean(unknown[0], MEMORY_FIELDS)} The fields are: {', '.join(MEMORY_FIELDS)}.".strip()
        raise InputError(f"A memory has no field {unknown[0]!r}.", hint=hint, param="fields")
    ordered = ListOrder(sort, order)
    lists = caller.newton.memory_lists(caller.origin)
    page = await lists.list_memories(filters, ordered, after=_decode_position(cursor, ordered), limit=limit)
    return MemoryListPage(
        items=list(page.memories),
        next=_encode_position(page.following, ordered) if page.following else None,
        count=page.total,
        sort=sort,
        order=order,
        selected=fields or (() if caller.trust in PERSON_TIERS else MODEL_FIELDS),
    )


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
