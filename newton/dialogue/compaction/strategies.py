"""Compaction strategies: each plans which blocks of a view to shorten, and when. Pure.

No strategy shortens system messages, the current turn or restored messages, or separates a tool call from its result.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

from newton.dialogue.view import (
    BATCH_KINDS,
    MESSAGE_TOKENS,
    WHOLE_TURN_KINDS,
    DialogueTurn,
    EntryKind,
    ViewKind,
    ViewMessage,
    count_view_tokens,
    iter_tool_groups,
    split_turns,
)

MIN_GAIN_TOKENS = 80  # that a block must save
MIN_SUMMARY_TOKENS = 40  # of a block
MIN_GAIN_SHARE = 0.05  # of the view's limit that a run must save, so that a full view is not compacted at every turn


class ViewState(NamedTuple):
    """The input of a strategy: a view (the messages that a model is sent), its token limit, and `pinned`.

    `pinned` are the positions of messages that a person restored, which are not shortened again.
    """

    view: Sequence[ViewMessage]
    max_tokens: int
    pinned: Set[int] = frozenset()

    @property
    def tokens(self) -> int:
        return count_view_tokens(self.view)


class CompactionBlock(NamedTuple):
    """Consecutive messages that a model is to be sent no more: a text of at most `max_tokens` replaces them."""

    kind: EntryKind
    items: tuple[ViewMessage, ...]
    max_tokens: int

    @property
    def first(self) -> int:
        return self.items[0].first

    @property
    def last(self) -> int:
        return self.items[-1].last

    @property
    def tokens(self) -> int:
        return count_view_tokens(self.items)

    @property
    def is_worthwhile(self) -> bool:
        """Return True if replacing the block saves at least MIN_GAIN_TOKENS."""
        return self.tokens >= self.max_tokens + MIN_GAIN_TOKENS


class CompactionStrategy(Protocol):
    @property
    def name(self) -> str:
        """Return the strategy's name, as in events and entries."""
        ...

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        """Return the blocks to shorten now, the oldest first; empty if the strategy should not run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskOutputs:
    """Strategy that shortens old outputs of tools, without a model.

    It runs when the conversation has at least `share` of its token limit. It shortens outputs of at least `least`
    tokens, except in the last `turns` turns.
    """

    name: str = "mask_outputs"
    share: float = 0.6
    turns: int = 3
    least: int = 200

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        if state.tokens < self.share * state.max_tokens:
            return ()
        blocks = [
            block
            for turn in _older_turns(split_turns(state.view), self.turns)
            for item in turn.items
            if item.role == "tool"
            and item.tokens >= self.least
            and (block := CompactionBlock("mask", (item,), max_tokens=_target_tokens((item,), 3, 100))).is_worthwhile
            and _is_unpinned((item,), state)
        ]
        return blocks if _token_gain(blocks) >= MIN_GAIN_SHARE * state.max_tokens else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeToolCalls:
    """Strategy that summarizes tool calls and their results, once some are older than `age` turns.

    It then summarizes all that are older than `age` / 2 turns, so that it runs only every few turns. A summary has at
    most `most` tokens.
    """

    name: str = "tool_calls"
    age: int = 10
    most: int = 300

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        turns = split_turns(state.view)
        if not any(self._blocks(turn, state) for turn in _older_turns(turns, self.age)):
            return ()
        reach = max(1, self.age // 2)
        return [block for turn in _older_turns(turns, reach) for block in self._blocks(turn, state)]

    def _blocks(self, turn: DialogueTurn, state: ViewState) -> list[CompactionBlock]:
        return [
            block
            for group in iter_tool_groups(turn)
            if (block := CompactionBlock("tools", group, max_tokens=_target_tokens(group, 4, self.most))).is_worthwhile
            and _is_unpinned(group, state)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeOldest:
    """Strategy that summarizes the oldest turns of a conversation, each in at most `most` tokens.

    It runs when the conversation has `share` of its token limit, and ends at the share `target`. The last `recent`
    turns stay as they are.
    """

    name: str = "threshold"
    share: float = 0.8
    target: float = 0.5
    recent: int = 4
    most: int = 400

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        left = state.tokens
        if left < self.share * state.max_tokens:
            return ()
        blocks: list[CompactionBlock] = []
        for turn in _older_turns(split_turns(state.view), self.recent):
            if left <= self.target * state.max_tokens:
                break
            block = CompactionBlock("turn", turn.items, max_tokens=_target_tokens(turn.items, 5, self.most))
            if _is_free_of(turn, WHOLE_TURN_KINDS) and block.is_worthwhile and _is_unpinned(turn.items, state):
                blocks.append(block)
                left -= block.tokens - block.max_tokens
        is_enough = left < self.share * state.max_tokens or _token_gain(blocks) >= MIN_GAIN_SHARE * state.max_tokens
        return blocks if is_enough else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTurns:
    """Strategy that replaces the summaries of several completed turns by one summary of at most `most` tokens.

    It depends on the age and number of turns, not on the size of the conversation, so that small summaries do not
    accumulate. It takes up to `most_turns` turns, of which `fewest` have summaries, and spares the last `back`
    messages.
    """

    name: str = "goal_batch"
    back: int = 20
    fewest: int = 3
    most_turns: int = 6
    most: int = 700

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        old = state.view[: max(len(state.view) - self.back, 0)]
        end = old[-1].last if old else -1
        turns = _older_turns(split_turns(state.view), 1)
        runs = _consecutive_runs(turns, lambda turn: turn.last <= end and _is_free_of(turn, BATCH_KINDS), state)
        size = max(self.most_turns, 1)
        return [
            block
            for run in runs
            for start in range(0, len(run), size)
            for part in [run[start : start + size]]
            if sum(any(item.kind in ("tools", "turn") for item in turn.items) for turn in part) >= self.fewest
            for items in [tuple(item for turn in part for item in turn.items)]
            if (block := CompactionBlock("goals", items, max_tokens=_target_tokens(items, 2, self.most))).is_worthwhile
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSummaries:
    """Strategy that merges `held` or more summaries of turns, except the newest `keep`, into one.

    The new summary has at most about `share` of the limit of the conversation.
    """

    name: str = "goal_merge"
    held: int = 6
    keep: int = 3
    share: float = 0.1

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        runs = _consecutive_runs(split_turns(state.view), lambda turn: turn.items[0].kind in BATCH_KINDS, state)
        run = next((run for run in runs if len(run) >= max(self.held, self.keep + 2)), None)
        if run is None:
            return ()
        items = tuple(item for turn in run[: len(run) - self.keep] for item in turn.items)
        target = max(MIN_SUMMARY_TOKENS, min(int(self.share * state.max_tokens), count_view_tokens(items) * 9 // 10))
        block = CompactionBlock("merged", items, max_tokens=target)
        return [block] if block.is_worthwhile else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FitToLimit:
    """Strategy that summarizes the oldest turns, except the current one, until the conversation is within its limit.

    A summary has at most `most` tokens. The strategy runs only when a person asks for a size, because it does not spare
    recent turns.
    """

    name: str = "limit"
    most: int = 700

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        over = state.tokens - state.max_tokens
        turns = _older_turns(split_turns(state.view), 1)
        blocks: list[CompactionBlock] = []
        for run in _consecutive_runs(turns, lambda turn: turn.is_complete, state):
            block = self._find_block(run, over)
            if over > 0 and block.tokens > block.max_tokens + MESSAGE_TOKENS:
                blocks.append(block)
                over -= block.tokens - block.max_tokens - MESSAGE_TOKENS
        return blocks

    def _find_block(self, run: Sequence[DialogueTurn], over: int) -> CompactionBlock:
        """Return the shortest beginning of the run that saves `over` tokens if it is summarized; else the whole run.

        The summary of a whole run is as short as needed.
        """
        items: tuple[ViewMessage, ...] = ()
        block = CompactionBlock("goals", items, max_tokens=0)
        for turn in run:
            items += turn.items
            kind: EntryKind = "merged" if any(item.kind in BATCH_KINDS for item in items) else "goals"
            block = CompactionBlock(kind, items, max_tokens=_target_tokens(items, 5, self.most))
            if block.tokens - block.max_tokens - MESSAGE_TOKENS >= over:
                return block
        needed = block.tokens - over - MESSAGE_TOKENS
        return block._replace(max_tokens=max(MIN_SUMMARY_TOKENS, min(block.max_tokens, needed)))


def refusal_reason(block: CompactionBlock, state: ViewState) -> str | None:
    """Return why a block must not be shortened by any strategy; None if it may be."""
    turns = split_turns(state.view)
    gaps = any(item.last + 1 != following.first for item, following in pairwise(block.items))
    if gaps or any(item.role == "system" for item in block.items):
        return "it contains a system message"
    if turns and block.last >= turns[-1].first:
        return "it reaches into the current turn"
    if not _is_unpinned(block.items, state):
        return "part of it was restored by a person"
    if block.kind == "mask":
        return None if [item.role for item in block.items] == ["tool"] else "it masks more than one tool output"
    return None if _is_whole(block, turns) else "it splits a turn, or a call from its result"


def _is_whole(block: CompactionBlock, candidates: Sequence[DialogueTurn]) -> bool:
    if block.kind == "tools":
        return any(block.items == group for turn in candidates for group in iter_tool_groups(turn))
    inside = [turn for turn in candidates if block.first <= turn.first and turn.last <= block.last]
    items = tuple(item for turn in inside for item in turn.items)
    return items == block.items and all(turn.is_complete for turn in inside)


def _older_turns(candidates: Sequence[DialogueTurn], age: int) -> Sequence[DialogueTurn]:
    """Return the turns that are followed by at least `age` turns. The current turn is never among them."""
    return candidates[: max(len(candidates) - max(age, 1), 0)]


def _is_free_of(turn: DialogueTurn, kinds: Set[ViewKind]) -> bool:
    """Return True if the turn is complete and contains no message of these kinds."""
    return turn.is_complete and not any(item.kind in kinds for item in turn.items)


def _is_unpinned(items: Iterable[ViewMessage], state: ViewState) -> bool:
    # over the pinned positions, which are few: an entry may cover most of a long session
    return not any(item.first <= place <= item.last for item in items for place in state.pinned)


def _token_gain(blocks: Sequence[CompactionBlock]) -> int:
    return sum(block.tokens - block.max_tokens for block in blocks)


def _target_tokens(items: Sequence[ViewMessage], divisor: int, max_tokens: int) -> int:
    return max(MIN_SUMMARY_TOKENS, min(max_tokens, count_view_tokens(items) // divisor))


def _consecutive_runs(
    candidates: Sequence[DialogueTurn], fits: Callable[[DialogueTurn], bool], state: ViewState
) -> list[list[DialogueTurn]]:
    """Return the longest possible runs of adjacent turns for which `fits` is True and which were not restored."""
    runs: list[list[DialogueTurn]] = [[]]
    for turn in candidates:
        if not (fits(turn) and _is_unpinned(turn.items, state)):
            runs.append([])
        elif runs[-1] and turn.first != runs[-1][-1].last + 1:
            runs.append([turn])
        else:
            runs[-1].append(turn)
    return [run for run in runs if run]


@dataclass(frozen=True, slots=True)
class CompactionObstacle:
    """Messages that cannot be shortened further: the reason, and their tokens."""

    reason: str
    tokens: int


def list_obstacles(state: ViewState) -> list[CompactionObstacle]:
    """Return what keeps a conversation above its limit, the most tokens first; nothing if it is within the limit."""
    if state.tokens <= state.max_tokens:
        return []
    tokens: dict[str, int] = {}
    for reason, items in _group_messages(state):
        tokens[reason] = tokens.get(reason, 0) + count_view_tokens(items)
    found = (CompactionObstacle(reason, count) for reason, count in tokens.items() if count)
    return sorted(found, key=lambda obstacle: -obstacle.tokens)


def _group_messages(state: ViewState) -> Iterator[tuple[str, Sequence[ViewMessage]]]:
    """Yield groups of messages, each with the reason why it cannot be shortened further."""
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
