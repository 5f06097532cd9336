"""What is sent when compaction is not enough: outputs are left out, then turns, until the view fits. Pure.

Nothing of this is kept: the next view begins from the entries again.
"""

from collections.abc import Mapping, Sequence, Set

from newton.dialogue.compaction.telling import masked, trimmed
from newton.dialogue.view import MESSAGE_TOKENS, Shown, cost, turns
from newton.memory.representations import Count

MASK_TOKENS = 60
NOTE_PART = 20  # what is left out is told where that takes at most this part of the view
LEFT_OUT = "[{turns} not shown here]"


def fitted(view: Sequence[Shown], *, most: int, count: Count, spared: int = 1) -> list[Shown]:
    """The view in at most so many tokens, whatever is in it. System messages and the last `spared` turns stay longest.

    What tools gave is left out first, the oldest first; then whole turns; at last the longest messages are cut. A call
    and its answers go together.
    """
    mates = _mates(view)
    kept = _without_outputs(list(view), most=most, count=count)
    kept = _without_turns(kept, mates, most=most, count=count, spared=spared)
    return _cut(kept, mates, most=most, count=count)


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


def _without(view: Sequence[Shown], gone: Sequence[Shown], mates: Mapping[int, Set[int]]) -> list[Shown]:
    ids = {id(item) for item in gone}
    torn = {place for item in gone if item.works for place in mates[item.first]}
    return [item for item in view if id(item) not in ids and not (item.works and item.first in torn)]


def _without_outputs(view: list[Shown], *, most: int, count: Count) -> list[Shown]:
    over = cost(view) - most
    for place, item in enumerate(view):
        if over <= 0:
            break
        if item.role == "tool" and item.tokens > 2 * MASK_TOKENS:
            text = masked(item, most=MASK_TOKENS, count=count)
            view[place] = item._replace(text=text, tokens=count(text) + MESSAGE_TOKENS)
            over -= item.tokens - view[place].tokens
    return view


def _without_turns(
    view: list[Shown], mates: Mapping[int, Set[int]], *, most: int, count: Count, spared: int
) -> list[Shown]:
    """Without as many of the oldest turns as have to go, and with a word on how many where there is room for it."""
    if cost(view) <= most:
        return view
    note = count(LEFT_OUT.format(turns="10000 earlier turns are")) + MESSAGE_TOKENS
    note = note if note * NOTE_PART <= most else 0
    left = cost(view) + note
    gone: list[Shown] = []
    whole = turns(view)
    taken = 0
    for turn in whole[: len(whole) - spared]:
        if left <= most:
            break
        gone += turn.items
        taken += 1
        left -= turn.tokens
    if not gone:
        return view
    rest = _without(view, gone, mates)
    if not note:
        return rest
    text = LEFT_OUT.format(turns="1 earlier turn is" if taken == 1 else f"{taken} earlier turns are")
    told = Shown("user", text, note, gone[0].first, gone[-1].last, kind="merged")
    place = next((n for n, item in enumerate(rest) if item.role != "system"), len(rest))
    return [*rest[:place], told, *rest[place:]]


def _cut(view: list[Shown], mates: Mapping[int, Set[int]], *, most: int, count: Count) -> list[Shown]:
    """With its longest messages cut until all of it fits; when even that is too much, only the end of it."""
    while (over := cost(view) - most) > 0 and view:
        place = max(range(len(view)), key=lambda n: view[n].tokens)
        item = view[place]
        room = item.tokens - MESSAGE_TOKENS - over
        if room >= 1 and item.text and not item.calls:
            text = trimmed(item.text, most=room, count=count)
            view[place] = item._replace(text=text, tokens=count(text) + MESSAGE_TOKENS)
        else:
            # its first message that is not a system's goes, or else its first
            first = next((item for item in view[:-1] if item.role != "system"), view[0])
            view = _without(view, [first], mates)
    return view
