"""Finds the memories that the filters of a request exclude.

They are excluded before the search, so that they do not use up the limited number of results.
"""

from collections.abc import Sequence
from uuid import UUID

from newton.cognition.request import ContextFilters
from newton.cognition.sources.task_memories import list_task_memories
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.sources", "filters.sql")


async def find_hidden_ids(tx: Tx, filters: ContextFilters, *, agent_id: UUID) -> Sequence[UUID]:
    """Return the ids of the memories to exclude from the search.

    The filter by kind is not applied here: excluded kinds are not searched at all.
    """
    task = filters.task
    if not (filters.since or filters.until or filters.event_types or filters.entity_types or task):
        return sorted(filters.exclude)
    task_memories = await list_task_memories(tx, task, agent_id=agent_id) if task else None
    rows = await SQL["list_filtered_out"].fetch_all(
        tx,
        agent_id=agent_id,
        since=filters.since,
        until=filters.until,
        event_types=sorted(filters.event_types),
        entity_types=sorted(filters.entity_types),
        task_session=task and task.session_id,
        task_firsts=task and [span.first for span in task.spans],
        task_lasts=task and [span.last for span in task.spans],
        task_memories=None if task_memories is None else list(task_memories),
    )
    return sorted(filters.exclude | {row["memory_id"] for row in rows})
