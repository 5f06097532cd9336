"""Operations on conflicts, which are pairs of facts that may contradict each other."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.heart.facts.conflicts import FactPair, FactVersion, PairPosition, Settlement
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.cursors import decode_cursor, encode_cursor, invalid_cursor_error
from newton.operations.declaration import operation
from newton.operations.fields import Cursor, Limit, MemoryRef
from newton.operations.results import CountedPage
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.agent.services.conflicts import ConflictService
    from newton.operations.caller import OperationCaller

SETTLEMENT_TEXTS: dict[Settlement, str] = {
    "newer": "The newer fact replaces the older one.",
    "older": "The older fact stays; the newer one is retracted.",
    "both": "Both facts stay.",
    "same": "The facts are merged.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPair:
    """The ids of the two facts of a conflict that was settled."""

    newer: UUID
    older: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledConflicts:
    """The conflicts that were settled, and how."""

    keep: Settlement
    items: list[SettledPair]


def _format_pair(pair: FactPair) -> str:
    return f"{_format_fact(pair.newer)}\n  older: {_format_fact(pair.older)}"


def _format_fact(fact: FactVersion) -> str:
    return f"{short_id(fact.memory_id)}  {fact.since:%Y-%m-%d}  {one_line(fact.text)}"


def _format_settled(settled: SettledConflicts) -> str:
    return f"{pluralize(len(settled.items), 'conflict')} settled. {SETTLEMENT_TEXTS[settled.keep]}"


@operation(
    "GET /v1/conflicts",
    "reads",
    name="conflicts",
    command="conflicts list",
    text=_format_pair,
    empty="No facts contradict each other.",
    advice="Say which fact is right: `newton conflicts settle ID newer|older|both|same`",
)
async def list_conflicts(
    caller: "OperationCaller", *, limit: Limit = 50, cursor: Cursor = None
) -> CountedPage[FactPair]:
    """List pairs of facts that may contradict each other, the newer fact of each pair first.

    A context shows both facts together until the conflict is settled. Ask the person which fact is right.

    Example: newton conflicts
    """
    return await list_conflict_page(caller.conflicts, limit=limit, cursor=cursor)


async def list_conflict_page(service: "ConflictService", *, limit: int, cursor: str | None) -> CountedPage[FactPair]:
    """Return one page of conflicts (pairs of facts), with the number of all on the first page.

    Raises InputError for an invalid cursor.
    """
    found = await service.list_conflicts(limit + 1, after=_decode(cursor))
    items = found[:limit]
    following = _encode(items[-1].position) if len(found) > limit else None
    count = await service.count_conflicts() if cursor is None else None
    return CountedPage(items=items, next=following, count=count)


async def _list_losers(caller: "OperationCaller", memory_id: str, keep: Settlement) -> list[str]:
    """Return the ids of the facts that do not stay as they are."""
    pairs = await caller.conflicts.list_of(memory_id)
    older, newer = [one.older.memory_id.hex for one in pairs], [one.newer.memory_id.hex for one in pairs]
    return older if keep == "newer" else newer if keep == "older" else [*older, *newer]


@operation(
    "POST /v1/conflicts/{memory_id}/settle",
    "changes",
    act="end",
    command="conflicts settle",
    text=_format_settled,
    list_targets=_list_losers,
)
async def settle_conflict(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    keep: Annotated[
        Settlement,
        Field(
            description="newer: the newer fact replaces the older one; older: the newer one is wrong; both: both are"
            " true; same: both say the same, so merge them."
        ),
    ],
) -> SettledConflicts:
    """Settle the conflicts of a fact as a person decided: keep the newer fact, the older one or both, or merge them.

    Only a person can settle those of what a person said, of core facts, and of facts related to safety.

    Example: newton conflicts settle 3f9c2a71 newer
    """
    pairs = await caller.conflicts.settle(memory_id, keep)
    items = [SettledPair(newer=one.newer.memory_id, older=one.older.memory_id) for one in pairs]
    return SettledConflicts(keep=keep, items=items)


def _encode(position: PairPosition) -> str:
    return encode_cursor(f"{position.found_at.isoformat()} {position.first_id} {position.second_id}")


def _decode(cursor: str | None) -> PairPosition | None:
    if cursor is None:
        return None
    try:
        at, first, second = decode_cursor(cursor).split(" ")
        position = PairPosition(datetime.fromisoformat(at), UUID(first), UUID(second))
    except ValueError:
        raise invalid_cursor_error() from None
    if position.found_at.tzinfo is None:
        raise invalid_cursor_error()
    return position
