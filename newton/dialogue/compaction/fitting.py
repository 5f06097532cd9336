"""What is sent when compaction is not enough: outputs are left out, then turns, until the view fits. Pure.

Nothing of this is kept: the next view begins from the entries again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from newton.dialogue.compaction.telling import masked, trimmed
from newton.dialogue.lines import abridged, written
from newton.dialogue.view import MESSAGE_TOKENS, Shown, Turn, cost, turns
from newton.memory.memory import Count
from newton.providers.chat import Call

FLOOR = 16  # tokens that the beginning of an input may cost where there is room for nothing
MASK_TOKENS = 60
LEAST = 24  # tokens that a message which is cut keeps; where there are fewer for each, some messages go instead
INPUT_PART = 2  # an input keeps this part of the view, whatever else there is
LINES = 2_000  # of the beginning and of the end of a message that is cut
LETTERS = 8  # of a token at most, about
NOTE_PART = 20  # what is left out is told where that takes at most this part of the view
_NOTE = re.compile(r"\[(At least )?([\d,]+) earlier turns? (?:is|are) not shown here\]")


def fitted(
    view: Sequence[Shown], *, most: int, count: Count, spared: int = 1, marks: int = MESSAGE_TOKENS
) -> list[Shown]:
    """The view in at most so many tokens, whatever is in it; around each message a model puts so many `marks`.

    The last `spared` turns are those that are being worked on. What gives way, in this order: what tools gave and were
    given in older turns, the oldest first; older turns as a whole; the same of the work at hand before its last step;
    what is longest. System messages stay longer than all else but the last input, which is cut when nothing else is
    left and then begins the view, even if it has fewer than FLOOR tokens. A call and its answers go together.
    """
    if cost(view) + (marks - MESSAGE_TOKENS) * len(view) <= most:
        return list(view)
    fitting = _Fitting(most=most, count=count, marks=marks, mates=_mates(view))
    kept = fitting.fit(_dearer(view, marks - MESSAGE_TOKENS), spared)
    return _dearer(kept, MESSAGE_TOKENS - marks)


def _dearer(view: Sequence[Shown], tokens: int) -> list[Shown]:
    return [item._replace(tokens=item.tokens + tokens) for item in view]


class _Gone(NamedTuple):
    """How many turns are not shown; `more` when there may be more, because an account of several was among them."""

    turns: int
    more: bool
    first: int
    last: int

    @property
    def words(self) -> str:
        number = f"{'At least ' if self.more else ''}{self.turns:,}"
        return f"[{number} earlier {'turn is' if self.turns == 1 else 'turns are'} not shown here]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitting:
    """The tokens of a view as a whole and of the marks around a message, and what belongs together in it."""

    most: int
    count: Count
    marks: int
    mates: Mapping[int, Set[int]]

    def fit(self, view: Sequence[Shown], spared: int) -> list[Shown]:
        items = [item for item in view if item.kind != "left_out"]
        told = [_told_before(item) for item in view if item.kind == "left_out"]
        note = self.count(_Gone(turns=10_000, more=True, first=0, last=0).words) + self.marks
        note = note if note * NOTE_PART <= self.most else 0
        inner = replace(self, most=self.most - (note if told else 0))
        kept = inner._without_outputs(items, _ids(_older(items, spared)))
        if cost(kept) > inner.most:
            inner = replace(self, most=self.most - note)
            gone = inner._oldest(kept, spared)
            kept = inner._without(kept, [item for turn in gone for item in turn.items])
            told += [_told_now(gone)] if gone else []
            kept = inner._without_outputs(kept, _ids(_stepped(kept, spared)))
            kept = inner._squeezed(kept, spared)
        return self._with_note(kept, told) if note else kept

    def _without_outputs(self, view: Sequence[Shown], old: Set[int]) -> list[Shown]:
        """Without what tools gave, and were given, at those places: the first of them first, until the rest fits."""
        over = cost(view) - self.most
        kept = list(view)
        for place, item in enumerate(view):
            if over > 0 and id(item) in old and item.works:
                shorter = self._masked(item)
                if shorter.tokens < item.tokens:
                    kept[place] = shorter
                    over -= item.tokens - shorter.tokens
        return kept

    def _masked(self, item: Shown) -> Shown:
        if item.calls:
            calls = _shorter(item.calls, MASK_TOKENS * len(item.calls), self.count)
            return item if calls == item.calls else self._said(item, item.text, calls)
        if item.tokens <= 2 * MASK_TOKENS:
            return item
        if item.kind == "mask":  # it says already how much it was
            return self._said(item, trimmed(item.text, most=MASK_TOKENS, count=self.count), ())
        return self._said(item, masked(item, most=MASK_TOKENS, count=self.count), ())

    def _oldest(self, view: Sequence[Shown], spared: int) -> list[Turn]:
        """As many of the oldest turns as have to go."""
        left = cost(view)
        gone: list[Turn] = []
        for turn in _older(view, spared):
            if left <= self.most:
                break
            gone.append(turn)
            left -= turn.tokens
        return gone

    def _without(self, view: Sequence[Shown], gone: Sequence[Shown]) -> list[Shown]:
        ids = {id(item) for item in gone}
        torn = {place for item in gone if item.works for place in self.mates[item.first]}
        return [item for item in view if id(item) not in ids and not (item.works and item.first in torn)]

    def _squeezed(self, view: list[Shown], spared: int) -> list[Shown]:
        """With its longest messages cut alike until all of it fits; where that leaves too little of each, without the
        oldest."""
        while cost(view) > self.most and view:
            asked = _input(view, spared)
            others = [item for item in view if item is not asked]
            kept = min(asked.tokens, self.most // INPUT_PART) if asked else 0
            level = _level([item.tokens for item in others], self.most - kept)
            if others and level < LEAST + self.marks:
                view = self._without(view, [next((item for item in others if item.role != "system"), others[0])])
                continue
            short = [item if item is asked else self._cut(item, level) for item in view]
            stuck = [item for item, cut in zip(view, short, strict=True) if cut.tokens > level and item is not asked]
            if stuck:
                view = self._without(view, stuck)
                continue
            left = self.most - cost([item for item in short if item is not asked])
            view = [self._cut(item, max(left, self.marks + 1)) if item is asked else item for item in short]
            break
        return view

    def _cut(self, item: Shown, most: int) -> Shown:
        if item.tokens <= most:
            return item
        room, calls = most - self.marks, item.calls
        if calls:
            calls = _shorter(calls, room - min(self._cost(item.text), room // 2), self.count)
            room -= self._cost(written(calls) or "")
        text = trimmed(item.text, most=room, count=self.count, lines=LINES) if item.text and room > 0 else ""
        return self._said(item, text, calls)

    def _said(self, item: Shown, text: str, calls: tuple[Call, ...]) -> Shown:
        tokens = self._cost(text) + self._cost(written(calls) or "") + self.marks
        return item._replace(text=text, calls=calls, tokens=tokens, kind="mask" if item.kind == "line" else item.kind)

    def _cost(self, text: str) -> int:
        return self.count(text) if text else 0

    def _with_note(self, view: list[Shown], told: Sequence[_Gone]) -> list[Shown]:
        number = sum(gone.turns for gone in told)
        if not number:
            return view
        more, last = any(gone.more for gone in told), max(gone.last for gone in told)
        gone = _Gone(number, more, min(gone.first for gone in told), last)
        item = Shown("user", gone.words, self.count(gone.words) + self.marks, gone.first, gone.last, kind="left_out")
        place = next((n for n, item in enumerate(view) if item.role != "system"), len(view))
        return [*view[:place], item, *view[place:]]


def _mates(view: Sequence[Shown]) -> Mapping[int, Set[int]]:
    """Of each call and each answer the places of all that belong together. An id may come again later."""
    groups: dict[int, set[int]] = {}
    called: dict[str, set[int]] = {}
    for item in view:
        group = called.pop(item.answers, None) if item.answers else None
        if item.works:
            group = {item.first} if group is None else group
            group.add(item.first)
            groups[item.first] = group
            called |= {call.id: group for call in item.calls}
    return groups


def _older(view: Sequence[Shown], spared: int) -> list[Turn]:
    """The turns before the last `spared` inputs: a system's line or a folded task may cut what came of one in two."""
    whole = turns(view)
    asked = [place for place, turn in enumerate(whole) if turn.items[0].asks]
    return whole[: asked[-min(spared, len(asked))] if asked and spared else max(len(whole) - spared, 0)]


def _stepped(view: Sequence[Shown], spared: int) -> list[Turn]:
    """The turns that are being worked on, up to their last step: what came of that one has just been read."""
    items = [item for turn in turns(view)[len(_older(view, spared)) :] for item in turn.items]
    last = max((place for place, item in enumerate(items) if item.calls), default=0)
    return [Turn(tuple(items[:last]))]


def _ids(whole: Iterable[Turn]) -> Set[int]:
    return {id(item) for turn in whole for item in turn.items}


def _input(view: Sequence[Shown], spared: int) -> Shown | None:
    return next((item for item in reversed(view) if item.asks), None) if spared else None


def _level(tokens: Sequence[int], most: int) -> int:
    """The most that each may cost so that all together cost at most so many."""
    left = most
    for place, each in enumerate(sorted(tokens)):
        if each > (share := left // (len(tokens) - place)):
            return share
        left -= each
    return max(most, 0)


def _shorter(calls: tuple[Call, ...], most: int, count: Count) -> tuple[Call, ...]:
    """Calls with as much of what they give to tools as fits, or with next to nothing of it."""
    letters = LETTERS * max(most, 0) // len(calls)
    while True:
        short = tuple(call._replace(arguments=abridged(call.arguments, most=letters)) for call in calls)
        if not letters or count(written(short) or "") <= most:
            return short
        letters //= 2


def _told_before(note: Shown) -> _Gone:
    found = _NOTE.fullmatch(note.text)
    assert found is not None, "such a message is only made here"
    return _Gone(int(found[2].replace(",", "")), bool(found[1]), note.first, note.last)


def _told_now(gone: Sequence[Turn]) -> _Gone:
    """A part of a turn without its input is none, and an account of several turns is one at least."""
    more = any(turn.items[0].kind in ("goals", "merged", "task") for turn in gone)
    return _Gone(sum(turn.begun for turn in gone), more, gone[0].first, gone[-1].last)
