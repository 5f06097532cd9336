"""A task that has ended is told in a line or two, in the place of its trace. Pure."""

from collections.abc import Iterator, Sequence

from newton.dialogue.compaction.strategies import Block, Sight, allowed
from newton.dialogue.compaction.telling import clipped
from newton.dialogue.stack import Task, Tree
from newton.dialogue.view import Turn, turns
from newton.memory.representations import Count, one_line

MOST = 300  # tokens of what is left of a task in the view

STRATEGY, RULES = "task", "fold/1"


def folds(sight: Sight, tree: Tree, *, count: Count) -> Iterator[tuple[Block, str]]:
    """What is to be folded now, with the words in its place: the traces of ended tasks, an outer one's for all in it.

    Of each the longest stretch of whole turns; the turn that is being taken waits for the next time.
    """
    held = turns(sight.view)[:-1]
    for task in outermost(tree):
        turned = _longest([turn for turn in held if _inside(turn, task)])
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
    dead = [
        f"{one_line(t.goal)} ({one_line(t.words or '')})" for t in tree.within(task.task_id) if t.status == "failed"
    ]
    parts = (
        (f"Task: {one_line(task.goal)}", MOST // 4),
        (f" -> {failed}{one_line(task.words or '')}", MOST // 2),
        (f" Dead ends: {'; '.join(dead)}" if dead else "", MOST // 4),
    )
    return clipped("".join(clipped(text, most=most, count=count) for text, most in parts), most=MOST, count=count)


def _inside(turn: Turn, task: Task) -> bool:
    return task.first <= turn.first and task.last is not None and turn.last <= task.last and turn.complete


def _longest(held: Sequence[Turn]) -> Sequence[Turn]:
    """Of turns those that follow each other in the log, and cost most."""
    runs: list[list[Turn]] = []
    for turn in held:
        if runs and turn.first == runs[-1][-1].last + 1:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return max(runs, key=lambda run: sum(turn.tokens for turn in run), default=())
