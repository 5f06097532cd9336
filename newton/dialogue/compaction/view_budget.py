"""What is sent when compaction is not enough: outputs are left out, then turns, until the view fits. Pure.

Nothing of this is kept: the next view begins from the entries again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from newton.dialogue.compaction.extractive_summary import mask_output, truncate_middle
from newton.dialogue.messages import dump_calls, shorten_arguments
from newton.dialogue.view import MESSAGE_TOKENS, DialogueTurn, ViewMessage, count_view_tokens, split_turns
from newton.memory.memory import TokenCounter
from newton.providers.chat import ToolCall

MIN_INPUT_TOKENS = 16  # tokens that the beginning of an input may cost where there is room for nothing
MASK_TOKENS = 60
MIN_CUT_TOKENS = (
    24  # tokens that a message which is cut keeps; where there are fewer for each, some messages go instead
)
INPUT_DIVISOR = 2  # an input keeps this part of the view, whatever else there is
MAX_LINES = 2_000  # of the beginning and of the end of a message that is cut
CHARS_PER_TOKEN = 8  # of a token at most, about
NOTE_DIVISOR = 20  # what is left out is told where that takes at most this part of the view
_NOTE = re.compile(r"\[(At least )?([\d,]+) earlier turns? (?:is|are) not shown here\]")


def fit_to_budget(
    view: Sequence[ViewMessage],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    protected_turns: int = 1,
    overhead: int = MESSAGE_TOKENS,
) -> list[ViewMessage]:
    """The view in at most so many tokens, whatever is in it; around each message a model puts so many `marks`.

    The last `spared` turns are those that are being worked on. What gives way, in this order: what tools gave and were
    given in older turns, the oldest first; older turns as a whole; the same of the work at hand before its last step;
    what is longest. System messages stay longer than all else but the last input, which is cut when nothing else is
    left and then begins the view, even if it has fewer than FLOOR tokens. A call and its answers go together.
    """
    if count_view_tokens(view) + (overhead - MESSAGE_TOKENS) * len(view) <= max_tokens:
        return list(view)
    fitting = _BudgetFitter(
        max_tokens=max_tokens, count_tokens=count_tokens, overhead=overhead, call_groups=_group_calls(view)
    )
    kept = fitting.fit(_add_tokens(view, overhead - MESSAGE_TOKENS), protected_turns)
    return _add_tokens(kept, MESSAGE_TOKENS - overhead)


def _add_tokens(view: Sequence[ViewMessage], tokens: int) -> list[ViewMessage]:
    return [item._replace(tokens=item.tokens + tokens) for item in view]


class _OmittedTurns(NamedTuple):
    """How many turns are not shown; `more` when there may be more, because an account of several was among them."""

    turns: int
    at_least: bool
    first: int
    last: int

    @property
    def text(self) -> str:
        number = f"{'At least ' if self.at_least else ''}{self.turns:,}"
        return f"[{number} earlier {'turn is' if self.turns == 1 else 'turns are'} not shown here]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _BudgetFitter:
    """The tokens of a view as a whole and of the marks around a message, and what belongs together in it."""

    max_tokens: int
    count_tokens: TokenCounter
    overhead: int
    call_groups: Mapping[int, Set[int]]

    def fit(self, view: Sequence[ViewMessage], protected_turns: int) -> list[ViewMessage]:
        items = [item for item in view if item.kind != "left_out"]
        told = [_parse_note(item) for item in view if item.kind == "left_out"]
        note = self.count_tokens(_OmittedTurns(turns=10_000, at_least=True, first=0, last=0).text) + self.overhead
        note = note if note * NOTE_DIVISOR <= self.max_tokens else 0
        inner = replace(self, max_tokens=self.max_tokens - (note if told else 0))
        kept = inner._without_outputs(items, _ids(_older_turns(items, protected_turns)))
        if count_view_tokens(kept) > inner.max_tokens:
            inner = replace(self, max_tokens=self.max_tokens - note)
            gone = inner._oldest_turns(kept, protected_turns)
            kept = inner._remove(kept, [item for turn in gone for item in turn.items])
            told += [_count_omitted(gone)] if gone else []
            kept = inner._without_outputs(kept, _ids(_completed_steps(kept, protected_turns)))
            kept = inner._squeeze(kept, protected_turns)
        return self._with_note(kept, told) if note else kept

    def _without_outputs(self, view: Sequence[ViewMessage], old: Set[int]) -> list[ViewMessage]:
        """Without what tools gave, and were given, at those places: the first of them first, until the rest fits."""
        over = count_view_tokens(view) - self.max_tokens
        kept = list(view)
        for place, item in enumerate(view):
            if over > 0 and id(item) in old and item.is_tool_work:
                shorter = self._mask(item)
                if shorter.tokens < item.tokens:
                    kept[place] = shorter
                    over -= item.tokens - shorter.tokens
        return kept

    def _mask(self, item: ViewMessage) -> ViewMessage:
        if item.calls:
            calls = _shorten_calls(item.calls, MASK_TOKENS * len(item.calls), self.count_tokens)
            return item if calls == item.calls else self._with_content(item, item.text, calls)
        if item.tokens <= 2 * MASK_TOKENS:
            return item
        if item.kind == "mask":  # it says already how much it was
            return self._with_content(
                item, truncate_middle(item.text, max_tokens=MASK_TOKENS, count_tokens=self.count_tokens), ()
            )
        return self._with_content(item, mask_output(item, max_tokens=MASK_TOKENS, count_tokens=self.count_tokens), ())

    def _oldest_turns(self, view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
        """As many of the oldest turns as have to go."""
        left = count_view_tokens(view)
        gone: list[DialogueTurn] = []
        for turn in _older_turns(view, protected_turns):
            if left <= self.max_tokens:
                break
            gone.append(turn)
            left -= turn.tokens
        return gone

    def _remove(self, view: Sequence[ViewMessage], removed: Sequence[ViewMessage]) -> list[ViewMessage]:
        ids = {id(item) for item in removed}
        torn = {place for item in removed if item.is_tool_work for place in self.call_groups[item.first]}
        return [item for item in view if id(item) not in ids and not (item.is_tool_work and item.first in torn)]

    def _squeeze(self, view: list[ViewMessage], protected_turns: int) -> list[ViewMessage]:
        """With its longest messages cut alike until all of it fits; where that leaves too little of each, without the
        oldest."""
        while count_view_tokens(view) > self.max_tokens and view:
            asked = _last_input(view, protected_turns)
            others = [item for item in view if item is not asked]
            kept = min(asked.tokens, self.max_tokens // INPUT_DIVISOR) if asked else 0
            level = _equal_share([item.tokens for item in others], self.max_tokens - kept)
            if others and level < MIN_CUT_TOKENS + self.overhead:
                view = self._remove(view, [next((item for item in others if item.role != "system"), others[0])])
                continue
            short = [item if item is asked else self._cut(item, level) for item in view]
            stuck = [item for item, cut in zip(view, short, strict=True) if cut.tokens > level and item is not asked]
            if stuck:
                view = self._remove(view, stuck)
                continue
            left = self.max_tokens - count_view_tokens([item for item in short if item is not asked])
            view = [self._cut(item, max(left, self.overhead + 1)) if item is asked else item for item in short]
            break
        return view

    def _cut(self, item: ViewMessage, max_tokens: int) -> ViewMessage:
        if item.tokens <= max_tokens:
            return item
        room, calls = max_tokens - self.overhead, item.calls
        if calls:
            calls = _shorten_calls(calls, room - min(self._cost(item.text), room // 2), self.count_tokens)
            room -= self._cost(dump_calls(calls) or "")
        text = (
            truncate_middle(item.text, max_tokens=room, count_tokens=self.count_tokens, max_lines=MAX_LINES)
            if item.text and room > 0
            else ""
        )
        return self._with_content(item, text, calls)

    def _with_content(self, item: ViewMessage, text: str, calls: tuple[ToolCall, ...]) -> ViewMessage:
        tokens = self._cost(text) + self._cost(dump_calls(calls) or "") + self.overhead
        return item._replace(text=text, calls=calls, tokens=tokens, kind="mask" if item.kind == "line" else item.kind)

    def _cost(self, text: str) -> int:
        return self.count_tokens(text) if text else 0

    def _with_note(self, view: list[ViewMessage], omitted: Sequence[_OmittedTurns]) -> list[ViewMessage]:
        number = sum(gone.turns for gone in omitted)
        if not number:
            return view
        more, last = any(gone.at_least for gone in omitted), max(gone.last for gone in omitted)
        gone = _OmittedTurns(number, more, min(gone.first for gone in omitted), last)
        item = ViewMessage(
            "user", gone.text, self.count_tokens(gone.text) + self.overhead, gone.first, gone.last, kind="left_out"
        )
        place = next((n for n, item in enumerate(view) if item.role != "system"), len(view))
        return [*view[:place], item, *view[place:]]


def _group_calls(view: Sequence[ViewMessage]) -> Mapping[int, Set[int]]:
    """Of each call and each answer the places of all that belong together. An id may come again later."""
    groups: dict[int, set[int]] = {}
    called: dict[str, set[int]] = {}
    for item in view:
        group = called.pop(item.tool_call_id, None) if item.tool_call_id else None
        if item.is_tool_work:
            group = {item.first} if group is None else group
            group.add(item.first)
            groups[item.first] = group
            called |= {call.id: group for call in item.calls}
    return groups


def _older_turns(view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
    """The turns before the last `spared` inputs: a system's line or a folded task may cut what came of one in two."""
    whole = split_turns(view)
    asked = [place for place, turn in enumerate(whole) if turn.items[0].is_input]
    return whole[
        : asked[-min(protected_turns, len(asked))]
        if asked and protected_turns
        else max(len(whole) - protected_turns, 0)
    ]


def _completed_steps(view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
    """The turns that are being worked on, up to their last step: what came of that one has just been read."""
    items = [item for turn in split_turns(view)[len(_older_turns(view, protected_turns)) :] for item in turn.items]
    last = max((place for place, item in enumerate(items) if item.calls), default=0)
    return [DialogueTurn(tuple(items[:last]))]


def _ids(whole: Iterable[DialogueTurn]) -> Set[int]:
    return {id(item) for turn in whole for item in turn.items}


def _last_input(view: Sequence[ViewMessage], protected_turns: int) -> ViewMessage | None:
    return next((item for item in reversed(view) if item.is_input), None) if protected_turns else None


def _equal_share(tokens: Sequence[int], max_tokens: int) -> int:
    """The most that each may cost so that all together cost at most so many."""
    left = max_tokens
    for place, each in enumerate(sorted(tokens)):
        if each > (share := left // (len(tokens) - place)):
            return share
        left -= each
    return max(max_tokens, 0)


def _shorten_calls(calls: tuple[ToolCall, ...], max_tokens: int, count_tokens: TokenCounter) -> tuple[ToolCall, ...]:
    """Calls with as much of what they give to tools as fits, or with next to nothing of it."""
    letters = CHARS_PER_TOKEN * max(max_tokens, 0) // len(calls)
    while True:
        short = tuple(call._replace(arguments=shorten_arguments(call.arguments, max_chars=letters)) for call in calls)
        if not letters or count_tokens(dump_calls(short) or "") <= max_tokens:
            return short
        letters //= 2


def _parse_note(note: ViewMessage) -> _OmittedTurns:
    found = _NOTE.fullmatch(note.text)
    assert found is not None, "such a message is only made here"
    return _OmittedTurns(int(found[2].replace(",", "")), bool(found[1]), note.first, note.last)


def _count_omitted(removed: Sequence[DialogueTurn]) -> _OmittedTurns:
    """A part of a turn without its input is none, and an account of several turns is one at least."""
    more = any(turn.items[0].kind in ("goals", "merged", "task") for turn in removed)
    return _OmittedTurns(sum(turn.has_input for turn in removed), more, removed[0].first, removed[-1].last)
