"""Results of the operations on tasks, and their texts for people: status as a symbol, number, goal, note. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from newton.dialogue.task_tree import Task, TaskStatus, TaskTree
from newton.memory.representations import one_line

STATUS_SYMBOLS: Mapping[TaskStatus, str] = {
    "planned": "○",
    "active": "▸",
    "complete": "✓",
    "blocked": "‖",
    "failed": "✗",
    "skipped": "·",
}
MAX_GOAL_CHARS, MAX_NOTE_CHARS = 160, 160
NO_TASKS = 'No tasks yet. Start one: `newton tasks push "Ship the release"`'
NO_CURRENT_TASK = "No current task. `newton tasks` lists all tasks."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task. `note` is the result of a finished task, or the reason why the task is blocked, failed or skipped.

    A step of a plan is `planned` until it starts, and `skipped` if its plan ends before.
    """

    task_id: UUID
    number: int
    parent_id: UUID | None
    replaces_task_id: UUID | None
    depth: int
    goal: str
    status: TaskStatus
    is_current: bool
    note: str | None
    first_position: int
    last_position: int | None
    pushed_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskList:
    """All tasks of a session, by number."""

    items: Sequence[TaskInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """The changed task, and the number of the task that is now current."""

    task_id: UUID
    number: int
    depth: int
    status: TaskStatus
    current_number: int | None
    # only for the person at the command line: the response of a request is stored, without text of a person
    text: Annotated[str, Field(exclude=True)] = ""


def to_task_infos(tree: TaskTree) -> list[TaskInfo]:
    """Return the tasks of a tree as records of a result."""
    return [
        TaskInfo(
            task_id=task.task_id,
            number=task.number,
            parent_id=task.parent_id,
            replaces_task_id=task.instead_of,
            depth=task.depth,
            goal=task.goal,
            status=task.status,
            is_current=task == tree.current,
            note=task.words,
            first_position=task.first,
            last_position=task.last,
            pushed_at=task.pushed_at,
            changed_at=task.changed_at,
        )
        for task in tree.tasks
    ]


def to_tree(items: Iterable[TaskInfo]) -> TaskTree:
    """Return a task tree with the tasks of a result, to draw it."""
    return TaskTree(
        [
            Task(
                task_id=one.task_id,
                number=one.number,
                parent_id=one.parent_id,
                instead_of=one.replaces_task_id,
                depth=one.depth,
                goal=one.goal,
                status=one.status,
                words=one.note,
                first=one.first_position,
                last=one.last_position,
                pushed_at=one.pushed_at,
                changed_at=one.changed_at,
            )
            for one in items
        ]
    )


def list_path(tree: TaskTree) -> list[TaskInfo]:
    """Return the tasks from the root to the current one."""
    return [one for one in to_task_infos(tree) if one.status == "active"]


def to_task_change(task: Task, tree: TaskTree, lines: Iterable[str]) -> TaskChange:
    """Return the result of a change of a task; `lines` are its text for a person."""
    return TaskChange(
        task_id=task.task_id,
        number=task.number,
        depth=task.depth,
        status=task.status,
        current_number=tree.current.number if tree.current else None,
        text="\n".join(lines),
    )


def format_path(tree: TaskTree) -> list[str]:
    """Return one line for each task on the path from the root goal to the current task."""
    return [format_task(one) for one in list_path(tree)] or [NO_CURRENT_TASK]


def format_task(task: TaskInfo) -> str:
    return f"{'   ' * task.depth}{task.number}. {one_line(task.goal)}{'  ← current' if task.is_current else ''}"


def format_tasks(tasks: TaskList) -> str:
    return "\n".join(draw_tree(to_tree(tasks.items))) or NO_TASKS


def draw_tree(tree: TaskTree) -> Iterator[str]:
    """Yield the lines of the task tree: one for each task, and one for its note if it has one."""
    for root in tree.children(None):
        for task in (root, *tree.descendants(root.task_id)):
            yield _draw_task(task, tree)
            if task.words:
                yield f"{'   ' * task.depth}     {_cut(task.words, MAX_NOTE_CHARS)}"


def draw_changes(tree: TaskTree) -> list[str]:
    """Return a line for each task that changed last, with its note: after a plan was made, all of its steps."""
    latest = max((task.changed_at for task in tree.tasks), default=None)
    changed = [task for task in tree.tasks if task.changed_at == latest]
    return [f"{_draw_task(task, tree)}{_describe_note(task)}" for task in changed]


def _draw_task(task: Task, tree: TaskTree) -> str:
    failed = next((one for one in tree.tasks if one.task_id == task.instead_of), None)
    replaces = f" (replaces {failed.number})" if failed else ""
    here = "  ← current" if task == tree.current else ""
    goal = _cut(task.goal, MAX_GOAL_CHARS)
    return f"{'   ' * task.depth}{STATUS_SYMBOLS[task.status]} {task.number}. {goal}{replaces}{here}"


def _describe_note(task: Task) -> str:
    return f" -> {_cut(task.words, MAX_NOTE_CHARS)}" if task.words else ""


def _cut(text: str, max_chars: int) -> str:
    line = one_line(text)
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()} …"
