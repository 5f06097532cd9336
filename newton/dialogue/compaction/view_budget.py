"""Reduction of a view to its token budget when compaction was not enough: first tool outputs, then turns. Pure.

The result is not stored: the next view is built from the log and its entries again.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple

from newton.dialogue.compaction.extractive_summary import mask_output, truncate_middle
from newton.dialogue.messages import dump_calls, shorten_arguments
from newton.dialogue.view import BATCH_KINDS, MESSAGE_TOKENS, DialogueTurn, ViewMessage, count_view_tokens, split_turns
from newton.memory.memory import TokenCounter
from newton.providers.chat import ToolCall

MIN_INPUT_TOKENS = 16  # of the beginning of an input, where nothing else fits
MASK_TOKENS = 60
MIN_CUT_TOKENS = 24  # of a truncated message; with less for each, messages are removed instead
INPUT_DIVISOR = 2  # the input keeps at least this fraction of the view
MAX_LINES = 2_000  # of the beginning and of the end of a truncated message
CHARS_PER_TOKEN = 8  # upper estimate
NOTE_DIVISOR = 20  # the note on omitted turns is added if it takes at most this fraction of the view
_NOTE = re.compile(r"\[(At least )?([\d,]+) earlier turns? (?:is|are) not shown here\]")


def fit_to_budget(
    view: Sequence[ViewMessage],
    *,
    max_tokens: int,
    count_tokens: TokenCounter,
    protected_turns: int = 1,
    overhead: int = MESSAGE_TOKENS,
) -> list[ViewMessage]:
    """Return the messages for a model, shortened to `max_tokens`. Each counts `overhead` tokens besides its text.

    The last `protected_turns` turns are in progress. Steps, until the messages fit: the texts from memory before the
    inputs of older turns are removed; outputs and arguments of tools in older turns are shortened, the oldest first;
    older turns are removed; tool work of the protected turns before the last step is shortened; the longest texts are
    truncated; messages are removed, system messages last; the last input is truncated, even below MIN_INPUT_TOKENS. A
    tool call and its results are removed together.
    """
    if count_view_tokens(view) + (overhead - MESSAGE_TOKENS) * len(view) <= max_tokens:
        return list(view)
    fitter = _BudgetFitter(max_tokens, count_tokens, overhead, call_groups=_group_calls(view))
    kept = fitter.fit(_add_tokens(view, overhead - MESSAGE_TOKENS), protected_turns)
    return _add_tokens(kept, MESSAGE_TOKENS - overhead)


def _add_tokens(view: Sequence[ViewMessage], tokens: int) -> list[ViewMessage]:
    return [item._replace(tokens=item.tokens + tokens) for item in view]


class _OmittedTurns(NamedTuple):
    """The number of omitted turns, and their positions.

    `at_least` means that there may be more, because a summary of several turns is among them.
    """

    turns: int
    at_least: bool
    first: int
    last: int

    @property
    def text(self) -> str:
        number = f"{'At least ' if self.at_least else ''}{self.turns:,}"
        return f"[{number} earlier {'turn is' if self.turns == 1 else 'turns are'} not shown here]"


@dataclass(frozen=True, slots=True)
class _BudgetFitter:
    """Shortens the messages for a model to a token budget.

    `call_groups` maps the position of each tool call and result to those of all that belong together.
    """

    max_tokens: int
    count_tokens: TokenCounter
    overhead: int
    call_groups: Mapping[int, Set[int]]

    def fit(self, view: Sequence[ViewMessage], protected_turns: int) -> list[ViewMessage]:
        """Shorten and remove messages in the steps of `fit_to_budget`, and note how many turns are left out."""
        items = [item for item in view if item.kind != "left_out"]
        omitted = [_parse_note(item) for item in view if item.kind == "left_out"]
        note = self.count_tokens(_OmittedTurns(turns=10_000, at_least=True, first=0, last=0).text) + self.overhead
        note = note if note * NOTE_DIVISOR <= self.max_tokens else 0
        inner = replace(self, max_tokens=self.max_tokens - (note if omitted else 0))
        items = _drop_memory_blocks(items, _ids(_older_turns(items, protected_turns)))
        kept = inner._without_outputs(items, _ids(_older_turns(items, protected_turns)))
        if count_view_tokens(kept) > inner.max_tokens:
            inner = replace(self, max_tokens=self.max_tokens - note)
            removed = inner._oldest_turns(kept, protected_turns)
            kept = inner._remove(kept, [item for turn in removed for item in turn.items])
            omitted += [_count_omitted(removed)] if removed else []
            kept = inner._without_outputs(kept, _ids(_completed_steps(kept, protected_turns)))
            kept = inner._squeeze(kept, protected_turns)
        return self._with_note(kept, omitted) if note else kept

    def _without_outputs(self, view: Sequence[ViewMessage], old: Set[int]) -> list[ViewMessage]:
        """Shorten tool calls and outputs, the first ones first, until all messages fit.

        Only messages whose object id is in `old` are shortened.
        """
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
        if item.kind == "mask":  # it contains the size already
            text = truncate_middle(item.text, max_tokens=MASK_TOKENS, count_tokens=self.count_tokens)
        else:
            text = mask_output(item, max_tokens=MASK_TOKENS, count_tokens=self.count_tokens)
        return self._with_content(item, text, ())

    def _oldest_turns(self, view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
        """Return the oldest turns that must be removed so that the messages fit."""
        left = count_view_tokens(view)
        removed: list[DialogueTurn] = []
        for turn in _older_turns(view, protected_turns):
            if left <= self.max_tokens:
                break
            removed.append(turn)
            left -= turn.tokens
        return removed

    def _remove(self, view: Sequence[ViewMessage], removed: Sequence[ViewMessage]) -> list[ViewMessage]:
        ids = {id(item) for item in removed}
        positions = {place for item in removed if item.is_tool_work for place in self.call_groups[item.first]}
        return [item for item in view if id(item) not in ids and not (item.is_tool_work and item.first in positions)]

    def _squeeze(self, view: list[ViewMessage], protected_turns: int) -> list[ViewMessage]:
        """Truncate the longest messages to equal size. If that size is too small, remove the oldest messages first."""
        while count_view_tokens(view) > self.max_tokens and view:
            last_input = _last_input(view, protected_turns)
            others = [item for item in view if item is not last_input]
            reserved = min(last_input.tokens, self.max_tokens // INPUT_DIVISOR) if last_input else 0
            level = equal_share([item.tokens for item in others], self.max_tokens - reserved)
            if others and level < MIN_CUT_TOKENS + self.overhead:
                view = self._remove(view, [next((item for item in others if item.role != "system"), others[0])])
                continue
            short = [item if item is last_input else self._cut(item, level) for item in view]
            cuts = zip(view, short, strict=True)
            if stuck := [item for item, cut in cuts if cut.tokens > level and item is not last_input]:
                view = self._remove(view, stuck)
                continue
            left = self.max_tokens - count_view_tokens([item for item in short if item is not last_input])
            view = [self._cut(item, max(left, self.overhead + 1)) if item is last_input else item for item in short]
            break
        return view

    def _cut(self, item: ViewMessage, max_tokens: int) -> ViewMessage:
        if item.tokens <= max_tokens:
            return item
        room, calls = max_tokens - self.overhead, item.calls
        if calls:
            calls = _shorten_calls(calls, room - min(self._cost(item.text), room // 2), self.count_tokens)
            room -= self._cost(dump_calls(calls) or "")
        limits = {"max_tokens": room, "max_lines": MAX_LINES}
        text = truncate_middle(item.text, count_tokens=self.count_tokens, **limits) if item.text and room > 0 else ""
        return self._with_content(item, text, calls)

    def _with_content(self, item: ViewMessage, text: str, calls: tuple[ToolCall, ...]) -> ViewMessage:
        tokens = self._cost(text) + self._cost(dump_calls(calls) or "") + self.overhead
        kind = "mask" if item.kind == "line" else item.kind
        return item._replace(text=text, calls=calls, tokens=tokens, kind=kind, memory=None)

    def _cost(self, text: str) -> int:
        return self.count_tokens(text) if text else 0

    def _with_note(self, view: list[ViewMessage], omitted: Sequence[_OmittedTurns]) -> list[ViewMessage]:
        number = sum(part.turns for part in omitted)
        if not number:
            return view
        at_least, last = any(part.at_least for part in omitted), max(part.last for part in omitted)
        total = _OmittedTurns(number, at_least, min(part.first for part in omitted), last)
        tokens = self.count_tokens(total.text) + self.overhead
        note = ViewMessage("user", total.text, tokens, total.first, total.last, kind="left_out")
        index = next((n for n, item in enumerate(view) if item.role != "system"), len(view))
        return [*view[:index], note, *view[index:]]


def _drop_memory_blocks(view: Sequence[ViewMessage], old: Set[int]) -> list[ViewMessage]:
    """Return the messages without the texts from memory before those whose object id is in `old`.

    All are removed at once: removing one with each turn would change every prompt, which defeats its cache.
    """
    return [
        item._replace(memory=None, tokens=item.tokens - item.memory.tokens) if item.memory and id(item) in old else item
        for item in view
    ]


def _group_calls(view: Sequence[ViewMessage]) -> Mapping[int, Set[int]]:
    """Map the position of each tool call and result to the positions of all calls and results that belong together.

    Call ids may be reused.
    """
    groups: dict[int, set[int]] = {}
    by_call: dict[str, set[int]] = {}
    for item in view:
        group = by_call.pop(item.tool_call_id, None) if item.tool_call_id else None
        if item.is_tool_work:
            group = {item.first} if group is None else group
            group.add(item.first)
            groups[item.first] = group
            by_call |= {call.id: group for call in item.calls}
    return groups


def _older_turns(view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
    """Return the turns before the last `protected_turns` user inputs.

    One input may have several turns, because a system message or a folded task splits them.
    """
    turns = split_turns(view)
    inputs = [index for index, turn in enumerate(turns) if turn.items[0].is_input]
    if inputs and protected_turns:
        return turns[: inputs[-min(protected_turns, len(inputs))]]
    return turns[: max(len(turns) - protected_turns, 0)]


def _completed_steps(view: Sequence[ViewMessage], protected_turns: int) -> list[DialogueTurn]:
    """Return the messages of the protected turns before the last tool call, as one turn.

    The results of the last call were just read, so they are not among them.
    """
    items = [item for turn in split_turns(view)[len(_older_turns(view, protected_turns)) :] for item in turn.items]
    last = max((place for place, item in enumerate(items) if item.calls), default=0)
    return [DialogueTurn(tuple(items[:last]))]


def _ids(turns: Iterable[DialogueTurn]) -> Set[int]:
    return {id(item) for turn in turns for item in turn.items}


def _last_input(view: Sequence[ViewMessage], protected_turns: int) -> ViewMessage | None:
    return next((item for item in reversed(view) if item.is_input), None) if protected_turns else None


def equal_share(tokens: Sequence[int], max_tokens: int) -> int:
    """Return the largest size to which messages can be truncated so that all fit into `max_tokens`."""
    left = max_tokens
    for index, cost in enumerate(sorted(tokens)):
        if cost > (share := left // (len(tokens) - index)):
            return share
        left -= cost
    return max(max_tokens, 0)


def _shorten_calls(calls: tuple[ToolCall, ...], max_tokens: int, count_tokens: TokenCounter) -> tuple[ToolCall, ...]:
    """Shorten the arguments of calls until they have at most `max_tokens`, or almost nothing is left."""
    max_chars = CHARS_PER_TOKEN * max(max_tokens, 0) // len(calls)
    while True:
        short = tuple(call._replace(arguments=shorten_arguments(call.arguments, max_chars=max_chars)) for call in calls)
        if not max_chars or count_tokens(dump_calls(short) or "") <= max_tokens:
            return short
        max_chars //= 2


def _parse_note(note: ViewMessage) -> _OmittedTurns:
    found = _NOTE.fullmatch(note.text)
    assert found is not None, "only _with_note creates such messages"
    return _OmittedTurns(int(found[2].replace(",", "")), bool(found[1]), note.first, note.last)


def _count_omitted(removed: Sequence[DialogueTurn]) -> _OmittedTurns:
    """Count the removed turns.

    A part of a turn without its user input does not count; a summary of several turns counts as at least one.
    """
    at_least = any(turn.items[0].kind in BATCH_KINDS for turn in removed)
    return _OmittedTurns(sum(turn.has_input for turn in removed), at_least, removed[0].first, removed[-1].last)
