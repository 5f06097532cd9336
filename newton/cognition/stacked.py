"""The stack of tasks as a context tells it, each part within its share of the budget. Pure."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.cognition.render import Block, item
from newton.dialogue.stack import Stack, Task
from newton.memory.memory import Count
from newton.memory.representations import forms, one_line

MOST_OF_SHARE = 0.25  # what one result beside the current task may take of what there is for all
ROOT, PATH, SIBLINGS = "root", "path", "siblings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacked:
    """Its lines by layer, and the tasks that they tell of; `left_out` counts those that had no room."""

    root: tuple[Block, ...] = ()
    path: tuple[Block, ...] = ()
    siblings: tuple[Block, ...] = ()
    task_ids: frozenset[UUID] = frozenset()
    left_out: int = 0

    def sections(self) -> Mapping[str, Sequence[Block]]:
        return {ROOT: self.root, PATH: self.path, SIBLINGS: self.siblings}


NO_TASKS = Stacked()


def stacked(stack: Stack, layers: Mapping[str, int], headers: Mapping[str, int], *, count: Count) -> Stacked:
    """The root goal first, as it heads the others; then the way down, those nearest to the current task before those
    further off; then what came of those beside it, the latest first. Whatever is longer than its part is cut."""
    if not stack.path:
        return NO_TASKS
    root, *below = stack.path
    goal = _line(
        f"{'Goal' if below else 'Goal, and now'}: ", root, _instead(root, stack), layers[ROOT] - headers[ROOT], count
    )
    if goal is None:
        return Stacked(left_out=len(stack.path) + len(stack.beside))
    way = _way(below, stack, layers[PATH], count)
    replaced = {stack.path[-1].instead_of}
    others = [task for task in stack.beside if task.task_id not in replaced]
    beside = _beside(others, layers[SIBLINGS], count)
    told = {root.task_id: goal} | way | beside
    return Stacked(
        root=(goal,),
        path=tuple(way[task.task_id] for task in below if task.task_id in way),
        siblings=tuple(beside[task.task_id] for task in others if task.task_id in beside),
        task_ids=frozenset(told) | frozenset(one for one in replaced if one),
        left_out=len(below) - len(way) + len(others) - len(beside),
    )


def _way(below: Sequence[Task], stack: Stack, room: int, count: Count) -> dict[UUID, Block]:
    """The current task may take half of the room, and what is left is shared by those above it alike."""
    way: dict[UUID, Block] = {}
    for left, task in zip(range(len(below), 0, -1), reversed(below), strict=True):
        current = task is below[-1]
        most = room // 2 if current and left > 1 else room // left
        block = _line(
            "Now: " if current else "Within it: ", task, _instead(task, stack) if current else "", most, count
        )
        if block:
            way[task.task_id] = block
            room -= block.tokens
    return way


def _beside(others: Sequence[Task], room: int, count: Count) -> dict[UUID, Block]:
    beside: dict[UUID, Block] = {}
    most = int(room * MOST_OF_SHARE)
    for task in sorted(others, key=lambda task: (task.changed_at, task.number), reverse=True):
        name = {"complete": "Done: ", "failed": "Dead end: "}.get(task.status, "Blocked: ")
        block = _line(name, task, f" -> {one_line(task.words or '')}", min(most, room), count)
        if block:
            beside[task.task_id] = block
            room -= block.tokens
    return beside


def _instead(task: Task, stack: Stack) -> str:
    failed = next((one for one in stack.beside if one.task_id == task.instead_of), None)
    return f" (instead of: {one_line(failed.goal)}, a dead end: {one_line(failed.words or '')})" if failed else ""


def _line(name: str, task: Task, behind: str, most: int, count: Count) -> Block | None:
    return _fitted(name, f"{one_line(task.goal)}{behind}", most, count)


@functools.lru_cache(maxsize=1_024)
def _fitted(name: str, text: str, most: int, count: Count) -> Block | None:
    """The line within so many tokens, cut if it must be; None when hardly a word of it fits. Remembered, because the
    stack is the same in many contexts, and counting is slow."""
    form = forms(text, count=count, prefix=name, most=most)
    fits = form.summary_tokens <= most and len(form.summary) > len(name) + 1
    return item(form.summary, form.summary_tokens) if fits else None
