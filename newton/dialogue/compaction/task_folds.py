"""Replacement of the messages of a finished task by one line with its goal and result. Pure."""

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from newton.dialogue.compaction.extractive_summary import truncate
from newton.dialogue.compaction.strategies import CompactionBlock, ViewState, refusal_reason
from newton.dialogue.task_tree import Task, TaskTree
from newton.dialogue.view import DialogueTurn, split_turns
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line

MAX_TOKENS = 300  # of a folded task in the view

STRATEGY, RULES_VERSION = "task", "fold/1"


def fold_tasks(
    state: ViewState, tree: TaskTree, *, count_tokens: TokenCounter
) -> Iterator[tuple[CompactionBlock, str]]:
    """Yield (block, text) for the messages of each ended task that can be replaced now.

    Of a task, the longest run of complete turns is replaced, never the current turn. An outer task includes its
    subtasks.
    """
    turns = split_turns(state.view)[:-1]
    firsts = [turn.first for turn in turns]
    for task in outermost_ended(tree):
        if task.last is None:  # a skipped step has no messages
            continue
        inside = turns[bisect_left(firsts, task.first) : bisect_right(firsts, task.last)]
        run = _longest_run([turn for turn in inside if turn.last <= task.last and turn.is_complete])
        if not run:
            continue
        items = tuple(item for turn in run for item in turn.items)
        block = CompactionBlock("task", items, max_tokens=MAX_TOKENS)
        text = fold_line(task, tree, count_tokens=count_tokens)
        if not (len(items) == 1 and items[0].text == text) and refusal_reason(block, state) is None:
            yield block, text


def outermost_ended(tree: TaskTree) -> list[Task]:
    """Return the ended tasks whose parent task has not ended."""
    ended = {task.task_id for task in tree.tasks if task.is_ended}
    return [task for task in tree.tasks if task.is_ended and task.parent_id not in ended]


def fold_line(task: Task, tree: TaskTree, *, count_tokens: TokenCounter) -> str:
    """Return the text that replaces the messages of a task: goal, result and failed subtasks."""
    failed = [f"{one.goal} ({one.words})" for one in tree.descendants(task.task_id) if one.status == "failed"]
    dead_ends = f" Dead ends: {'; '.join(failed)}" if failed else ""
    result = f" -> {'failed: ' if task.status == 'failed' else ''}{task.words}"
    return _fit_line(f"Task: {task.goal}", result, dead_ends, count_tokens)


@functools.lru_cache(maxsize=1_024)
def _fit_line(goal: str, result: str, dead_ends: str, count_tokens: TokenCounter) -> str:
    """Join the parts of a line within MAX_TOKENS.

    Cached, because every turn of a session checks whether all ended tasks are replaced.
    """
    parts = ((goal, MAX_TOKENS // 4), (result, MAX_TOKENS // 2), (dead_ends, MAX_TOKENS // 4))
    cut = [
        truncate(" " * (text[:1] == " ") + one_line(text), max_tokens=limit, count_tokens=count_tokens)
        for text, limit in parts
        if text
    ]
    return truncate("".join(cut), max_tokens=MAX_TOKENS, count_tokens=count_tokens)


def _longest_run(candidates: Sequence[DialogueTurn]) -> Sequence[DialogueTurn]:
    """Return the run of consecutive turns that has the most tokens."""
    runs: list[list[DialogueTurn]] = []
    for turn in candidates:
        if runs and turn.first == runs[-1][-1].last + 1:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return max(runs, key=lambda run: sum(turn.tokens for turn in run), default=())
