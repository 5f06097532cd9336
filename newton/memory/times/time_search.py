"""Search by time, which finds memories that occurred in a time range or mention a time in it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Kind
from newton.memory.times.time_expressions import TimeRange

# Kinds that match by their own time. The time of a fact or a procedure is unrelated to its content.
DATED_KINDS: frozenset[Kind] = frozenset({"exchange", "episode", "event", "decision"})

SQL = load("newton.memory.times", "time_search.sql")


async def find_in_range(
    tx: Tx, ranges: Sequence[TimeRange], search_arguments: Mapping[str, object]
) -> dict[UUID, Record]:
    """Return the memories of each kind in the ranges, by id. The most important, then the latest, are first."""
    rows = await SQL["find_in_ranges"].fetch_all(tx, **search_arguments, **_range_arguments(ranges))
    return {row[0]: row for row in rows}


async def filter_in_range(
    tx: Tx, memory_ids: Sequence[UUID], ranges: Sequence[TimeRange], *, agent_id: UUID
) -> frozenset[UUID]:
    """Return the ids of those memories that are in any of the ranges."""
    rows = await SQL["filter_by_ranges"].fetch_all(
        tx, agent_id=agent_id, memory_ids=memory_ids, **_range_arguments(ranges)
    )
    return frozenset(row[0] for row in rows)


def _range_arguments(ranges: Sequence[TimeRange]) -> dict[str, object]:
    return {"starts_at": [span.start for span in ranges], "ends_at": [span.end for span in ranges]}
