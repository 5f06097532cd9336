"""A task that has ended is told in a line or two, in the place of its trace. Pure."""

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from newton.dialogue.compaction.strategies import Block, Sight, allowed
from newton.dialogue.compaction.telling import clipped
from newton.dialogue.stack import Task, Tree
from newton.dialogue.view import Turn, turns
from newton.memory.memory import Count
from newton.memory.representations import one_line

MOST = 300  # tokens of what is left of a task in the view

STRATEGY, RULES = "task", "fold/1"


def folds(sight: Sight, tree: Tree, *, count: Count) -> Iterator[tuple[Block, str]]:
    """What is to be folded now, with the words in its place: the traces of ended tasks, an outer one's for all in it.

    Of each the longest stretch of whole turns; the turn that is being taken waits for the next time.
    """
    held = turns(sight.view)[:-1]
    firsts = [turn.first for turn in held]
    for task in outermost(tree):
        assert task.last is not None, "it has ended"
        inside = held[bisect_left(firsts, task.first) : bisect_right(firsts, task.last)]
        turned = _longest([turn for turn in inside if turn.last <= task.last and turn.complete])
        if not turned:
            continue
        items = tuple(item for turn in turned for item in turn.items)
        block, text = Block("task", items, most=MOST), told(task, tree, count=count)
        if not (len(items) == 1 and items[0].text == text) and allowed(block, sight) is None:
            yield block, text


def outermost(tree: Tree) -> list[Task]:
    """The tasks that have ended, in none that has."""
    ended = {task.task_id for task in tree.tasks if task.ended}
    return [task for task in tree.tasks if task.ended and task.parent_id not in ended]


def told(task: Task, tree: Tree, *, count: Count) -> str:
    """What stays visible: what it was for, what came of it, and what did not work on the way."""
    failed = "failed: " if task.status == "failed" else ""
    ends = [one for one in tree.within(task.task_id) if one.status == "failed"]
    dead = "; ".join(f"{end.goal} ({end.words})" for end in ends)
    return _fitted(f"Task: {task.goal}", f" -> {failed}{task.words}", f" Dead ends: {dead}" if dead else "", count)


@functools.lru_cache(maxsize=1_024)
def _fitted(goal: str, result: str, ends: str, count: Count) -> str:
    """Remembered, because it is asked at every turn of a session whether all that has ended is folded."""
    parts = ((goal, MOST // 4), (result, MOST // 2), (ends, MOST // 4))
    cut = [clipped(" " * (text[:1] == " ") + one_line(text), most=most, count=count) for text, most in parts if text]
    return clipped("".join(cut), most=MOST, count=count)


def _longest(held: Sequence[Turn]) -> Sequence[Turn]:
    """Of turns those that follow each other in the log, and cost most."""
    runs: list[list[Turn]] = []
    for turn in held:
        if runs and turn.first == runs[-1][-1].last + 1:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return max(runs, key=lambda run: sum(turn.tokens for turn in run), default=())
