"""Finds the memories that the filters of a request exclude.

They are excluded before the search, so that they do not use up the limited number of results.
"""

from collections.abc import Sequence
from uuid import UUID

from newton.cognition.request import ContextFilters
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.sources", "filters.sql")


async def find_hidden_ids(tx: Tx, filters: ContextFilters, *, agent_id: UUID) -> Sequence[UUID]:
    """Return the ids of the memories to exclude from the search.

    The filter by kind is not applied here: excluded kinds are not searched at all.
    """
    if not (filters.since or filters.until or filters.event_types or filters.entity_types):
        return sorted(filters.exclude)
    rows = await SQL["list_filtered_out"].fetch_all(
        tx,
        agent_id=agent_id,
        since=filters.since,
        until=filters.until,
        event_types=sorted(filters.event_types),
        entity_types=sorted(filters.entity_types),
    )
    return sorted(filters.exclude | {row["memory_id"] for row in rows})
