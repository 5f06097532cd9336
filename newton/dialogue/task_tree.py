"""The tasks of a session as a tree, and what may become of each: one table of changes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, NamedTuple
from uuid import UUID

from newton.errors import InputError

TaskStatus = Literal["active", "blocked", "complete", "failed"]
TaskEvent = Literal["completed", "failed", "blocked", "resumed", "abandoned"]


class TaskTransition(NamedTuple):
    """From `before`, `event` leads to `after`."""

    before: TaskStatus
    event: TaskEvent
    after: TaskStatus


# Every change of status that there is. The database's constraint and docs/lifecycle.md agree with it.
TRANSITIONS: frozenset[TaskTransition] = frozenset(
    {
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
ENDED_STATUSES: frozenset[TaskStatus] = frozenset({"complete", "failed"})

NO_CURRENT_TASK = "There is no current task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A goal of a session. `number` counts the session's tasks; `instead_of` is the failed one whose place it took.

    `words` are what its last change said: the result, or why it failed or cannot go on. The lines from `first` to
    `last` are its trace; `last` is None as long as it has not ended.
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

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED_STATUSES

    @property
    def summary(self) -> str:
        """What is left of it: what came of it when it is complete, else what it is for."""
        return self.words if self.status == "complete" and self.words else self.goal

    def status_after(self, event: TaskEvent) -> TaskStatus:
        """Its status after the event. Raises InputError when there is no such change."""
        found = _STATUS_AFTER.get((self.status, event))
        if found is None:
            raise InputError(
                f"Task {self.number} is {self.status}, so it cannot be {event}.",
                hint="`newton tasks` shows what each task is.",
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStack:
    """Where the work stands: the way from the root to the current task, and what came of those beside it: its own
    subtasks, and those it shares its parent with. Both are empty when no task is active."""

    path: tuple[Task, ...] = ()
    related: tuple[Task, ...] = ()

    @property
    def current(self) -> Task | None:
        return self.path[-1] if self.path else None


EMPTY_STACK = TaskStack()


@dataclass(frozen=True)
class TaskTree:
    """All tasks of a session by their numbers. The active ones stand one in the other."""

    tasks: Sequence[Task]

    @property
    def current(self) -> Task | None:
        """The innermost active one."""
        return max((task for task in self.tasks if task.status == "active"), key=lambda t: t.depth, default=None)

    @property
    def path(self) -> tuple[Task, ...]:
        """From the root to the current one."""
        known = {task.task_id: task for task in self.tasks}
        way: list[Task] = []
        at = self.current
        while at:
            way.append(at)
            at = known[at.parent_id] if at.parent_id else None
        return tuple(reversed(way))

    @property
    def stack(self) -> TaskStack:
        path = self.path
        if not path:
            return EMPTY_STACK
        own, around = path[-1].task_id, path[-1].parent_id
        beside = [task for task in self.tasks if task.status != "active" and task.parent_id in (own, around)]
        return TaskStack(path=path, related=tuple(beside))

    @cached_property
    def _children(self) -> Mapping[UUID | None, Sequence[Task]]:
        found: dict[UUID | None, list[Task]] = {}
        for task in self.tasks:
            found.setdefault(task.parent_id, []).append(task)
        return found

    def children(self, parent_id: UUID | None) -> Sequence[Task]:
        """Its subtasks, or the roots."""
        return self._children.get(parent_id, ())

    def descendants(self, task_id: UUID) -> list[Task]:
        """Its subtasks and theirs, each before its own."""
        found: list[Task] = []
        waiting = list(reversed(self.children(task_id)))
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(self.children(found[-1].task_id))
        return found

    def require_current(self) -> Task:
        """The current task. Raises InputError when there is none."""
        if self.current is None:
            blocked = any(task.status == "blocked" for task in self.tasks)
            hint = "`newton tasks resume TASK` takes up a blocked one, " if blocked else ""
            raise InputError(NO_CURRENT_TASK, hint=f"{hint}`newton tasks push GOAL` begins one.")
        return self.current

    def require_completable(self) -> Task:
        """The current task, if nothing in it waits. Raises InputError."""
        task = self.require_current()
        waiting = [one for one in self.children(task.task_id) if one.status == "blocked"]
        if waiting:
            raise InputError(
                f"Task {task.number} still has a blocked subtask: {waiting[0].number}, {waiting[0].goal!r}.",
                hint=f"`newton tasks resume {waiting[0].number}` takes it up; then end it, or give it up with `fail`.",
            )
        return task

    def require_resumable(self, task_ref: str) -> Task:
        """The blocked task that is meant by its number or the end of its id. Raises InputError when it cannot be
        current next: it must be blocked, and in the task that is current, or a root when none is."""
        task = self.find(task_ref)
        task.status_after("resumed")
        parent = next((one for one in self.tasks if one.task_id == task.parent_id), None)
        current = self.current
        if parent and parent.status == "blocked":
            raise InputError(
                f"Task {task.number} is in task {parent.number}, which is blocked too.",
                hint=f"Resume that one first: `newton tasks resume {parent.number}`.",
            )
        if (current and current.task_id) != task.parent_id:
            at = current.number if current else "none"
            raise InputError(
                f"Task {task.number} is not in the current task, which is {at}.",
                hint="Pop, block or fail the current one first, until you are where it belongs.",
            )
        return task

    def find(self, task_ref: str) -> Task:
        """The task that is meant. Raises InputError when there is none or more than one."""
        word = task_ref.strip().lower().lstrip("#")
        found = [one for one in self.tasks if word == str(one.number)] or [
            one for one in self.tasks if len(word) >= 6 and one.task_id.hex.endswith(word.replace("-", ""))
        ]
        if len(found) != 1:
            raise InputError(f"No task of the session is {task_ref!r}.", hint="`newton tasks` shows their numbers.")
        return found[0]
