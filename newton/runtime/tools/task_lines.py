"""Task trees as lines of text: a symbol for the status, the number, the goal, and the result or the reason. Pure."""

from collections.abc import Iterator, Mapping

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


def draw_tree(tree: TaskTree) -> Iterator[str]:
    """Yield the lines of the task tree: one for each task, and one for its note if it has one."""
    for root in tree.children(None):
        for task in (root, *tree.descendants(root.task_id)):
            yield _draw_task(task, tree)
            if task.words:
                yield f"{'   ' * task.depth}     {_cut(task.words, MAX_NOTE_CHARS)}"


def draw_changes(tree: TaskTree) -> list[str]:
    """Return one line for each task that changed last, with its note: after a plan was made, all of its steps."""
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
