"""Which parts of a view are to be told shorter, and when: one pure plan a strategy, composed in an order.

A strategy looks at a view and names blocks, or none. It never touches system messages, the turn that is being taken, or
what a person has restored, and never parts a call from its answer.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from newton.dialogue.view import EntryKind, Shown, Turn, cost, groups, turns
from newton.errors import InputError

LEAST_GAIN = 80  # tokens; what costs hardly more than the words in its place stays as it is
WORTH = 0.05  # of the most that a view may cost: for less a full one is not touched, else it would be at every turn


class Sight(NamedTuple):
    """What a strategy looks at: the view, the tokens it may cost at most, and the lines that a person has restored."""

    view: Sequence[Shown]
    most: int
    pinned: Set[int] = frozenset()

    @property
    def tokens(self) -> int:
        return cost(self.view)


class Block(NamedTuple):
    """A part of a view that is to be told in at most so many tokens."""

    kind: EntryKind
    items: tuple[Shown, ...]
    most: int

    @property
    def first(self) -> int:
        return self.items[0].first

    @property
    def last(self) -> int:
        return self.items[-1].last

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    @property
    def worth(self) -> bool:
        """Whether it comes out so much shorter that it need not be tried again."""
        return self.tokens >= self.most + LEAST_GAIN


class Strategy(Protocol):
    @property
    def name(self) -> str:
        """What events and entries call it."""
        ...

    def plan(self, sight: Sight) -> Sequence[Block]:
        """What it would tell shorter now, the oldest first; nothing when it should not run."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskOutputs:
    """Leaves out what tools gave some turns ago, once the view is rather full. Costs no model."""

    name: str = "mask_outputs"
    share: float = 0.6
    turns: int = 3
    least: int = 200

    def plan(self, sight: Sight) -> Sequence[Block]:
        if sight.tokens < self.share * sight.most:
            return ()
        blocks = [
            block
            for turn in _older(turns(sight.view), self.turns)
            for item in turn.items
            if item.role == "tool"
            and item.tokens >= self.least
            and (block := Block("mask", (item,), most=_part((item,), 3, 100))).worth
            and _free((item,), sight)
        ]
        return blocks if _gain(blocks) >= WORTH * sight.most else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls:
    """Tells of work with tools that is some turns old. It reaches half as far back as it waits, so that it runs only
    every few turns."""

    name: str = "tool_calls"
    age: int = 10
    most: int = 300

    def plan(self, sight: Sight) -> Sequence[Block]:
        held = turns(sight.view)
        if not any(self._blocks(turn, sight) for turn in _older(held, self.age)):
            return ()
        reach = max(1, self.age // 2)
        return [block for turn in _older(held, reach) for block in self._blocks(turn, sight)]

    def _blocks(self, turn: Turn, sight: Sight) -> list[Block]:
        return [
            block
            for group in groups(turn)
            if (block := Block("tools", group, most=_part(group, 4, self.most))).worth and _free(group, sight)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """When the view is nearly full, tells of its oldest turns, one by one, until it is about half full."""

    name: str = "threshold"
    share: float = 0.8
    target: float = 0.5
    recent: int = 4
    most: int = 400

    def plan(self, sight: Sight) -> Sequence[Block]:
        left = sight.tokens
        if left < self.share * sight.most:
            return ()
        blocks: list[Block] = []
        for turn in _older(turns(sight.view), self.recent):
            if left <= self.target * sight.most:
                break
            block = Block("turn", turn.items, most=_part(turn.items, 5, self.most))
            if _tells(turn) and block.worth and _free(turn.items, sight):
                blocks.append(block)
                left -= block.tokens - block.most
        return blocks if left < self.share * sight.most or _gain(blocks) >= WORTH * sight.most else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalBatch:
    """Tells of several turns at once that are done and have been told shorter already. It goes by their age and number,
    never by how full the view is: else a floor of small blocks would grow without end."""

    name: str = "goal_batch"
    back: int = 20
    fewest: int = 3
    most_turns: int = 6
    most: int = 700

    def plan(self, sight: Sight) -> Sequence[Block]:
        old = sight.view[: max(len(sight.view) - self.back, 0)]
        end = old[-1].last if old else -1
        runs = _runs(_older(turns(sight.view), 1), lambda turn: turn.last <= end and _done(turn), sight)
        return [
            block
            for run in runs
            for part in _parts(run, max(self.most_turns, 1))
            if sum(_shortened(turn) for turn in part) >= self.fewest
            for items in [tuple(item for turn in part for item in turn.items)]
            if (block := Block("goals", items, most=_part(items, 2, self.most))).worth
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalMerge:
    """Makes one account of several older ones, so that they too are bounded: by a part of what a view may cost."""

    name: str = "goal_merge"
    held: int = 6
    keep: int = 3
    share: float = 0.1

    def plan(self, sight: Sight) -> Sequence[Block]:
        accounts = _runs(turns(sight.view), lambda turn: turn.items[0].kind in ("goals", "merged", "task"), sight)
        run = next((run for run in accounts if len(run) >= max(self.held, self.keep + 2)), None)
        if run is None:
            return ()
        items = tuple(item for turn in run[: len(run) - self.keep] for item in turn.items)
        tokens = sum(item.tokens for item in items)
        block = Block("merged", items, most=max(40, min(int(self.share * sight.most), tokens * 9 // 10)))
        return [block] if block.worth else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Strategies in the order in which they are asked, and how much of a window a conversation may take."""

    strategies: tuple[Strategy, ...]
    most: int = 100_000


# Specific ones come first, broad ones last.
PRESETS: Mapping[str, Preset] = {
    "default": Preset(strategies=(MaskOutputs(), ToolCalls(), Threshold(), GoalBatch(), GoalMerge())),
    "long": Preset(
        strategies=(MaskOutputs(), ToolCalls(age=5), Threshold(share=0.75), GoalBatch(), GoalMerge()), most=150_000
    ),
    "conservative": Preset(
        strategies=(MaskOutputs(share=0.8), ToolCalls(age=20), Threshold(share=0.9), GoalBatch(), GoalMerge())
    ),
    "none": Preset(strategies=()),
}


KINDS: Mapping[str, type[MaskOutputs | ToolCalls | Threshold | GoalBatch | GoalMerge]] = {
    "mask_outputs": MaskOutputs,
    "tool_calls": ToolCalls,
    "threshold": Threshold,
    "goal_batch": GoalBatch,
    "goal_merge": GoalMerge,
}
_NAMED = re.compile(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*")


def preset(text: str) -> Preset:
    """The preset of that name, or strategies in the order given: `tool_calls(age=5), threshold(share=0.7)`.

    Raises InputError for what is neither.
    """
    if text in PRESETS:
        return PRESETS[text]
    parts = re.split(r",(?![^(]*\))", text)
    return Preset(strategies=tuple(_strategy(part) for part in parts))


def _strategy(text: str) -> Strategy:
    named = _NAMED.fullmatch(text)
    kind = KINDS.get(named[1]) if named else None
    if named and named[1] in PRESETS:
        raise InputError(
            f"{named[1]!r} is a preset: it stands alone, without strategies beside it or settings of its own.",
            hint=f"There are: {', '.join(KINDS)}; or give the preset alone.",
        )
    if named is None or kind is None:
        known = ", ".join((*PRESETS, *KINDS))
        raise InputError(f"{text.strip()!r} is no way to make conversations shorter.", hint=f"There are: {known}.")
    usual: dict[str, float] = {key: value for key, value in asdict(kind()).items() if key != "name"}
    given: dict[str, Any] = {}
    for setting in filter(None, (part.strip() for part in (named[2] or "").split(","))):
        name, _, value = setting.partition("=")
        try:
            given[name.strip()] = _number(value, type(usual[name.strip()]))
        except (KeyError, ValueError):
            hint = f"It takes {', '.join(f'{key}={usual[key]}' for key in usual)}."
            raise InputError(f"{named[1]} takes no {setting!r}.", hint=hint) from None
    return kind(**given)


def _number(text: str, kind: type[float]) -> float:
    number = kind(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


def allowed(block: Block, sight: Sight) -> str | None:
    """Why a block may not be told shorter, whichever strategy named it; None when it may."""
    held = turns(sight.view)
    gaps = any(item.last + 1 != following.first for item, following in pairwise(block.items))
    if gaps or any(item.role == "system" for item in block.items):
        return "it holds a system message"
    if held and block.last >= held[-1].first:
        return "it reaches into the current turn"
    if not _free(block.items, sight):
        return "a person has restored a part of it"
    if block.kind == "mask":
        masks = [item.role for item in block.items] == ["tool"]
        return None if masks else "it masks more than what one tool gave"
    if not _whole(block, held):
        return "it cuts a turn, or a call from its answer"
    return None


def _whole(block: Block, held: Sequence[Turn]) -> bool:
    if block.kind == "tools":
        return any(block.items == group for turn in held for group in groups(turn))
    inside = [turn for turn in held if block.first <= turn.first and turn.last <= block.last]
    items = tuple(item for turn in inside for item in turn.items)
    return items == block.items and all(turn.complete for turn in inside)


def _older(held: Sequence[Turn], age: int) -> Sequence[Turn]:
    """The turns that at least so many came after; the one that is being taken is never among them."""
    return held[: max(len(held) - max(age, 1), 0)]


def _tells(turn: Turn) -> bool:
    """Whether there is more in it to tell of than a block: one that tells of whole turns is short already."""
    return turn.complete and not any(item.kind in ("turn", "goals", "merged", "task") for item in turn.items)


def _done(turn: Turn) -> bool:
    """Whether it may stand in an account of several; one that is only talk may stand between others."""
    return turn.complete and not any(item.kind in ("goals", "merged", "task") for item in turn.items)


def _shortened(turn: Turn) -> bool:
    return any(item.kind in ("tools", "turn") for item in turn.items)


def _free(items: Iterable[Shown], sight: Sight) -> bool:
    return not any(place in sight.pinned for item in items for place in range(item.first, item.last + 1))


def _gain(blocks: Sequence[Block]) -> int:
    return sum(block.tokens - block.most for block in blocks)


def _part(items: Sequence[Shown], parts: int, most: int) -> int:
    return max(40, min(most, sum(item.tokens for item in items) // parts))


def _runs(held: Sequence[Turn], fits: Callable[[Turn], bool], sight: Sight) -> list[list[Turn]]:
    """The longest stretches of turns that fit and follow each other in the log."""
    runs: list[list[Turn]] = [[]]
    for turn in held:
        if not (fits(turn) and _free(turn.items, sight)):
            runs.append([])
        elif runs[-1] and turn.first != runs[-1][-1].last + 1:
            runs.append([turn])
        else:
            runs[-1].append(turn)
    return [run for run in runs if run]


def _parts(run: Sequence[Turn], size: int) -> list[Sequence[Turn]]:
    return [run[start : start + size] for start in range(0, len(run), size)]
