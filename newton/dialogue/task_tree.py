"""The tasks of a session as a tree, and the allowed changes of their status. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, NamedTuple
from uuid import UUID

from newton.errors import InputError

TaskStatus = Literal["planned", "active", "blocked", "complete", "failed", "skipped"]
TaskEvent = Literal["started", "skipped", "completed", "failed", "blocked", "resumed", "abandoned"]


class TaskTransition(NamedTuple):
    """An allowed change of a task's status: `event` changes it from `before` to `after`."""

    before: TaskStatus
    event: TaskEvent
    after: TaskStatus


# All allowed transitions. The database's constraint and docs/lifecycle.md must agree with it.
TRANSITIONS: frozenset[TaskTransition] = frozenset(
    {
        TaskTransition("planned", "started", "active"),
        TaskTransition("planned", "skipped", "skipped"),
        TaskTransition("active", "completed", "complete"),
        TaskTransition("active", "failed", "failed"),
        TaskTransition("active", "blocked", "blocked"),
        TaskTransition("blocked", "resumed", "active"),
        TaskTransition("blocked", "abandoned", "failed"),
    }
)
_STATUS_AFTER: Mapping[tuple[TaskStatus, TaskEvent], TaskStatus] = {
    (change.before, change.event): change.after for change in TRANSITIONS
}
ENDED_STATUSES: frozenset[TaskStatus] = frozenset({"complete", "failed", "skipped"})

NO_CURRENT_TASK = "There is no current task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A goal within a session.

    `number` counts the tasks of the session. `instead_of` is the failed task that it replaces. `words` is the text of
    the last change: the result, or why it failed, is blocked or was skipped. `first` and `last` are its first and last
    message; `last` is None until it has ended. It `is_step` if it was created as a step of a plan; then `began_at` is
    the time at which its work began, and None before.
    """

    task_id: UUID
    number: int
    parent_id: UUID | None
    instead_of: UUID | None
    depth: int
    goal: str
    status: TaskStatus
    words: str | None
    first: int
    last: int | None
    pushed_at: datetime
    changed_at: datetime
    is_step: bool = False
    began_at: datetime | None = None

    @property
    def has_begun(self) -> bool:
        """Return False for a planned or skipped step of a plan, else True."""
        return self.status not in ("planned", "skipped")

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED_STATUSES

    @property
    def summary(self) -> str:
        """Return the result of a complete task, else the goal."""
        return self.words if self.status == "complete" and self.words else self.goal

    def status_after(self, event: TaskEvent) -> TaskStatus:
        """Return the status after the event. Raises InputError if the event is not allowed in the current status."""
        found = _STATUS_AFTER.get((self.status, event))
        if found is None:
            raise InputError(
                f"Task {self.number} is {self.status}, so it cannot be {event}.",
                hint="`newton tasks` shows the status of each task.",
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStack:
    """The path from the root task of a session to the current task, and the tasks shown beside it.

    `related` are ended or blocked siblings and subtasks of the current task, and the planned steps of all tasks of the
    path. Both are empty if no task is active.
    """

    path: tuple[Task, ...] = ()
    related: tuple[Task, ...] = ()

    @property
    def current(self) -> Task | None:
        return self.path[-1] if self.path else None


EMPTY_STACK = TaskStack()


@dataclass(frozen=True)
class TaskTree:
    """All tasks of a session, by number. The active tasks form one path from a root."""

    tasks: Sequence[Task]

    @property
    def current(self) -> Task | None:
        """Return the deepest active task; None if no task is active."""
        return max((task for task in self.tasks if task.status == "active"), key=lambda t: t.depth, default=None)

    @property
    def path(self) -> tuple[Task, ...]:
        """Return the tasks from the root to the current one."""
        by_id = {task.task_id: task for task in self.tasks}
        path: list[Task] = []
        task = self.current
        while task:
            path.append(task)
            task = by_id[task.parent_id] if task.parent_id else None
        return tuple(reversed(path))

    @property
    def stack(self) -> TaskStack:
        """Return the path to the current task with the tasks shown beside it; EMPTY_STACK without a current task."""
        path = self.path
        if not path:
            return EMPTY_STACK
        parents, plans = (path[-1].task_id, path[-1].parent_id), {task.task_id for task in path}
        related = [
            task
            for task in self.tasks
            if (task.parent_id in plans if task.status == "planned" else task.parent_id in parents)
            and task.status not in ("active", "skipped")
        ]
        return TaskStack(path=path, related=tuple(related))

    @property
    def ended_ranges(self) -> tuple[tuple[int, int], ...]:
        """Return the first and the last position of the messages of each ended task that has messages."""
        ended = [(task.first, task.last) for task in self.tasks if task.is_ended and task.last is not None]
        return tuple((first, last) for first, last in ended if first <= last)

    @cached_property
    def _children(self) -> Mapping[UUID | None, Sequence[Task]]:
        found: dict[UUID | None, list[Task]] = {}
        for task in self.tasks:
            found.setdefault(task.parent_id, []).append(task)
        return found

    def children(self, parent_id: UUID | None) -> Sequence[Task]:
        """Return the subtasks of a task; for None, the root tasks."""
        return self._children.get(parent_id, ())

    def descendants(self, task_id: UUID) -> list[Task]:
        """Return all tasks below a task, each before its own subtasks."""
        found: list[Task] = []
        waiting = list(reversed(self.children(task_id)))
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(self.children(found[-1].task_id))
        return found

    def find_next_step(self, plan_id: UUID) -> Task | None:
        """Return the first step of a plan that has not begun; None if there is none."""
        return next((one for one in self.children(plan_id) if one.status == "planned"), None)

    def is_plan_complete(self, plan_id: UUID) -> bool:
        """Return whether a task has steps, and each of its subtasks is complete or was replaced after it failed."""
        subtasks = self.children(plan_id)
        replaced = {one.instead_of for one in subtasks}
        done = [one.status == "complete" or (one.status == "failed" and one.task_id in replaced) for one in subtasks]
        return any(one.is_step for one in subtasks) and all(done)

    def require_current(self) -> Task:
        """Return the current task. Raises InputError if no task is active."""
        if self.current is None:
            blocked = any(task.status == "blocked" for task in self.tasks)
            hint = "`newton tasks resume NUMBER` resumes a blocked task, " if blocked else ""
            raise InputError(NO_CURRENT_TASK, hint=f"{hint}`newton tasks push GOAL` creates a task.")
        return self.current

    def require_completable(self) -> Task:
        """Return the current task. Raises InputError if no task is active, or if a subtask is blocked."""
        task = self.require_current()
        blocked = [one for one in self.children(task.task_id) if one.status == "blocked"]
        if blocked:
            raise InputError(
                f"Task {task.number} still has a blocked subtask: {blocked[0].number}, {blocked[0].goal!r}.",
                hint=f"Resume the subtask with `newton tasks resume {blocked[0].number}`, then finish it with"
                " `newton tasks pop` or `newton tasks fail`.",
            )
        return task

    def require_resumable(self, number: int) -> Task:
        """Return the blocked or planned task with this number.

        Raises InputError unless it is blocked or planned, and a subtask of the current task (a root task if no task is
        active).
        """
        task = self.find(number)
        if task.status != "planned":
            task.status_after("resumed")
        parent = next((one for one in self.tasks if one.task_id == task.parent_id), None)
        current = self.current
        if parent and parent.status == "blocked":
            raise InputError(
                f"Task {task.number} is in task {parent.number}, which is blocked too.",
                hint=f"Resume task {parent.number} first: `newton tasks resume {parent.number}`.",
            )
        if (current and current.task_id) != task.parent_id:
            kind = (
                f"a subtask of the current task {current.number}" if current else "a root task, but no task is current"
            )
            raise InputError(
                f"Task {task.number} is not {kind}.",
                hint=f"End or block the current task first, until the parent of task {task.number} is current.",
            )
        return task

    def find(self, number: int) -> Task:
        """Return the task with this number. Raises InputError if there is none."""
        found = next((one for one in self.tasks if one.number == number), None)
        if found is None:
            raise InputError(
                f"The session has no task {number}.", hint="`newton tasks` shows the tasks with their numbers."
            )
        return found


def subtract_ranges(whole: tuple[int, int], holes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of a range of positions that no hole covers.

    >>> subtract_ranges((2, 9), [(4, 5), (8, 12)])
    [(2, 3), (6, 7)]
    """
    parts = [whole]
    for first, last in holes:
        cut = [((low, min(high, first - 1)), (max(low, last + 1), high)) for low, high in parts]
        parts = [(low, high) for pair in cut for low, high in pair if low <= high]
    return parts


def is_in_ranges(position: int | None, ranges: Iterable[tuple[int, int]]) -> bool:
    """Return True if one of the ranges contains the position; False for None (not a message)."""
    return position is not None and any(first <= position <= last for first, last in ranges)
