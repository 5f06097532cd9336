"""Command `newton list`: the stored memories as a table."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.agent.memory_inputs import MAX_LIST_LIMIT, ListMemoriesInput
from newton.errors import InputError
from newton.memory.inventory.memory_list import SortKey
from newton.memory.lookup import short_id
from newton.operations.text_format import truncate
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.memory.filter_options import NO_FILTER, FilterOptions, parse_options
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.memory_views import MemoryField, MemoryListItem, MemoryListResponse
from newton.runtime.tools.memory_views import list_memories as build_list

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


async def list_memories(
    *,
    select: FilterOptions = NO_FILTER,
    sort: Annotated[SortKey, Parameter(help="Time or number to sort by.")] = "created",
    reverse: Annotated[bool, Parameter(negative=(), help="Oldest or lowest first.")] = False,
    limit: LimitOption = 30,
    cursor: Annotated[
        str | None, Parameter(help="Cursor of a further page, which the last line of a page prints.")
    ] = None,
    field: Annotated[
        tuple[MemoryField, ...], Parameter(negative=(), help="Only this field in the JSON; repeatable.")
    ] = (),
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the stored memories, newest first, with filters. `newton recall` searches for an answer to a question.

    Quarantined, superseded and retracted memories are listed only if --state selects them.

    Example: newton list --kind fact --subject Ana --sort importance
    """
    if field and not json:
        raise InputError("--field selects fields of the JSON output only.", hint="Give --json together with --field.")
    if not 1 <= limit <= MAX_LIST_LIMIT:
        raise InputError(
            f"A limit of {limit} is out of range.",
            hint=f"Give a limit from 1 to {MAX_LIST_LIMIT}; --cursor lists further pages.",
        )
    fields = {"sort": sort, "order": "asc" if reverse else "desc", "limit": limit, "cursor": cursor}
    query = parse_options(ListMemoriesInput, {**select.to_fields(), **fields})
    async with open_agent(load_settings(agent)) as newton:
        page = await build_list(newton, "cli", query, fields=field)
    if json:
        formatting.print_json(page.model_dump(mode="json", exclude_unset=True))
        return
    if not page.items:
        say(_format_empty(select, cursor))
        return
    say(format_table(page, query, ids=[short_id(one.memory_id) for one in page.items if one.memory_id]))
    if page.next:
        formatting.print_notice(f"\nMore: the same command with --cursor {page.next}")


def format_table(page: MemoryListResponse, query: ListMemoriesInput, *, ids: Sequence[str]) -> str:
    """Format one page of memories as a table that fits the width of the terminal. `ids` are their short ids."""
    time, column = SHOWN_TIMES.get(query.sort, OCCURRED)
    if all(getattr(item, time) is None for item in page.items):  # not selected, or none of them has it
        time, column = OCCURRED
    rows = [_to_row(item, time, short) for item, short in zip(page.items, ids, strict=True)]
    head = ("id", "kind", "state", column, "importance", "text")
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head) - 1)]
    room = _text_width(sum(widths) + 2 * len(widths))
    order = ORDER_NAMES[query.sort][query.order == "desc"]
    total = "" if page.count is None else f"{formatting.pluralize(page.count, 'memory', 'memories')}, "
    shown = f", the first {len(rows)}" if page.count and page.count > len(rows) else ""
    note = "  (* importance set by a person)" if any(item.is_importance_set for item in page.items) else ""
    lines = [f"{total}{order}{shown}{note}", _format_row(head, widths, room)]
    return "\n".join([*lines, *(_format_row(row, widths, room) for row in rows)])


def _to_row(item: MemoryListItem, time: str, short: str) -> tuple[str, ...]:
    assert item.importance is not None, "a table has all its fields"
    at: datetime | None = getattr(item, time)
    state = f"{item.state}, quarantined" if item.quarantined else item.state or ""
    mark = "*" if item.is_importance_set else ""
    text = item.text or ""
    about = f"[{item.subject}] " if item.subject and item.subject.casefold() not in text.casefold() else ""
    date = f"{at:%Y-%m-%d}" if at else "never"
    text = text.removeprefix(f"[{date}] ")
    return (short, item.kind or "", state, date, f"{item.importance:g}{mark}", f"{about}{text}")


def _format_row(row: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    text = row[-1] if room is None else truncate(row[-1], room)
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, text]).rstrip()


def _text_width(used: int) -> int | None:
    """Return the number of columns left beside `used` ones; None if the output is not a terminal."""
    columns = current_terminal().columns()
    return None if columns is None else max(columns - used, MIN_TEXT_WIDTH)


def _format_empty(select: FilterOptions, cursor: str | None) -> str:
    return format_empty(has_filter=bool(select.to_fields()), has_states=bool(select.state), cursor=cursor)


def format_empty(*, has_filter: bool, has_states: bool = False, cursor: str | None = None) -> str:
    """Say that a list has no memory, and what to try."""
    if cursor:
        return "There are no more memories."
    if has_filter:
        hint = "" if has_states else " `--state all` also lists superseded, retracted and quarantined memories."
        return f"No memory matches these filters.{hint}"
    return 'The memory is empty. `newton remember "…"` stores a fact.'
