"""Reasons why a view stays longer than the limit that a person asked for. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from newton.dialogue.compaction.strategies import ViewState
from newton.dialogue.view import WHOLE_TURN_KINDS, ViewMessage, count_view_tokens, split_turns


@dataclass(frozen=True, slots=True)
class CompactionObstacle:
    """Messages that cannot be shortened further: the reason, and their tokens."""

    reason: str
    tokens: int


def list_obstacles(state: ViewState) -> list[CompactionObstacle]:
    """Return what keeps the view above its limit, the most tokens first; nothing if the view has at most its limit."""
    if state.tokens <= state.max_tokens:
        return []
    tokens: dict[str, int] = {}
    for reason, items in _group_messages(state):
        tokens[reason] = tokens.get(reason, 0) + count_view_tokens(items)
    found = (CompactionObstacle(reason, count) for reason, count in tokens.items() if count)
    return sorted(found, key=lambda obstacle: -obstacle.tokens)


def _group_messages(state: ViewState) -> Iterator[tuple[str, Sequence[ViewMessage]]]:
    turns = split_turns(state.view)
    yield "system messages stay as they are", [item for item in state.view if item.role == "system"]
    injected = [item for item in state.view if item.kind == "injected"]
    yield "messages injected from other sessions stay until they are ejected", injected
    for number, turn in enumerate(turns, start=1):
        if number == len(turns):
            yield "the current turn is never compacted", turn.items
        elif any(item.first <= position <= item.last for item in turn.items for position in state.pinned):
            yield "messages that were restored stay in full", turn.items
        elif not turn.is_complete:
            yield "a turn without the user's message, or with a tool result in another turn, stays in full", turn.items
        elif all(item.kind in WHOLE_TURN_KINDS for item in turn.items):
            yield "summaries cannot be shorter", turn.items
        else:
            yield "no summary is shorter than these messages", turn.items
