"""Finds the memories that belong to a task of a session, and those that the filters of a request exclude.

Excluded memories are passed to the search, so that they do not use up its limited number of results.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.cognition.request import ActiveSpan, ContextFilters, TaskScope
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.log import MAX_POSITION
from newton.dialogue.task_tree import Task, TaskTree

SQL = load("newton.cognition.sources", "filters.sql")

MAX_TASK_MEMORIES = 2_000  # besides messages, of which a range says which belong to the task


async def load_task_scope(
    tx: Tx, task: Task, tree: TaskTree, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None
) -> TaskScope:
    """Return the scope of a task of a session; with `moment`, as it was then."""
    query = SQL["list_status_changes"]
    rows = await query.fetch_all(tx, agent_id=agent_id, session_id=session_id, task_id=task.task_id, moment=moment)
    subtasks = tuple(one.task_id for one in tree.descendants(task.task_id))
    return TaskScope(session_id, task.task_id, task.number, tuple(_find_spans(task, rows)), subtasks)


async def list_task_memories(tx: Tx, task: TaskScope, *, agent_id: UUID) -> frozenset[UUID]:
    """Return the ids of the memories of a task, except its messages: see `TaskScope.contains_message`."""
    rows = await SQL["list_task_memories"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=task.session_id,
        firsts=[span.first for span in task.spans],
        lasts=[span.last for span in task.spans],
        starts=[span.since for span in task.spans],
        ends=[span.until for span in task.spans],
        task_ids=list(task.subtask_ids),
        max_rows=MAX_TASK_MEMORIES,
    )
    return frozenset(row["memory_id"] for row in rows)


def _find_spans(task: Task, changes: Iterable[Record]) -> Iterable[ActiveSpan]:
    """Yield the spans in which the task was active: from its start or a resumption until it was blocked or ended."""
    start = None if task.is_step else (task.first, task.pushed_at)  # a step of a plan has an event when it starts
    for event, position, at in changes:
        if event in ("started", "resumed"):
            start = position + 1, at
        elif start:
            yield ActiveSpan(start[0], position, start[1], at)
            start = None
    if start:
        yield ActiveSpan(start[0], MAX_POSITION, start[1], None)


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
