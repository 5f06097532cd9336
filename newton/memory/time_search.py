"""What is of a time that is asked for: it happened or was said then, or speaks of it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Kind
from newton.memory.time_expressions import TimeRange

# What is of the time at which it happened; when a fact was told, or a procedure learnt, says nothing of what it tells.
DATED_KINDS: frozenset[Kind] = frozenset({"exchange", "episode", "event", "decision"})

SQL = load("newton.memory", "time_search.sql")


async def find_in_range(
    tx: Tx, ranges: Sequence[TimeRange], search_arguments: Mapping[str, object]
) -> dict[UUID, Record]:
    """The weightiest and then the latest of each kind that is wanted, as a search finds them; nothing is known of their
    words. `spread` says what is wanted as a search does."""
    return {
        row[0]: row for row in await SQL["find_in_ranges"].fetch_all(tx, **search_arguments, **_range_arguments(ranges))
    }


async def filter_in_range(
    tx: Tx, memory_ids: Sequence[UUID], ranges: Sequence[TimeRange], *, agent_id: UUID
) -> frozenset[UUID]:
    """Those of these memories that are of any of the times."""
    rows = await SQL["filter_by_ranges"].fetch_all(
        tx, agent_id=agent_id, memory_ids=memory_ids, **_range_arguments(ranges)
    )
    return frozenset(row[0] for row in rows)


def _range_arguments(ranges: Sequence[TimeRange]) -> dict[str, object]:
    return {"starts_at": [span.start for span in ranges], "ends_at": [span.end for span in ranges]}
