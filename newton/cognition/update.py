"""A context brought up to date without a search: what is new enters first, and the lowest-scored gives way. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assemble import Assembly, Setting, Telling, candidate, composed, excluded, focused
from newton.cognition.bundle import Considered
from newton.cognition.fill import Placed
from newton.cognition.render import DayTokens
from newton.cognition.score import Scored
from newton.memory.recall import Found

ENTERS = 1.0  # the score of what is new: nothing that was found has a higher one
THIRD = 3  # what is shortened is at most this part of what it was

NEW = "new since the context was made"
FOCUSED = "already in Current Focus"
SHORTENED = "shortened to make room"
LEFT = "left to make room"
PASSED = "newer lines took its place in Current Focus"


class Entering(NamedTuple):
    """What is new: lines of the session that are out of view by now, the nearest first, and memories with a score."""

    lines: Sequence[Found] = ()
    memories: Sequence[Scored] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The context as it is from now on, what entered it, and what became of that which had to give way."""

    assembly: Assembly
    entered: tuple[UUID, ...]
    gave_way: Mapping[UUID, str]


class Held(NamedTuple):
    """What a context was made of: its candidates, best first, and what stood in its Current Focus."""

    considered: Sequence[Considered]
    focus: Sequence[Found]


def renewed(held: Held, setting: Setting, entering: Entering) -> Renewed | None:
    """A context with what is new beside what it held, in at most the setting's total of tokens.

    While that is too much, the lowest-scored are first shortened, to a third or less, then they leave; the oldest lines
    in focus go last. What stands in every context stays: None when that alone is too much.
    """
    focus = focused(setting, entering=frozenset(found.memory_id for found in entering.lines))
    shown = {found.memory_id for found in focus}
    passed = {found.memory_id: PASSED for found in held.focus if found.memory_id not in shown}
    page = _Page(_beside(held, focus, setting, entering.memories), focus, passed, setting.day_tokens)
    while True:
        assembly = composed(page.considered, setting, focus=page.focus)
        over = assembly.page.tokens - setting.budget.total
        if over <= 0:
            new = (*(found.memory_id for found in entering.lines), *(s.found.memory_id for s in entering.memories))
            present = {*(f.memory_id for f in assembly.focus), *(c.memory_id for c in assembly.candidates if c.detail)}
            return Renewed(
                assembly=assembly, entered=tuple(one for one in new if one in present), gave_way=page.gave_way
            )
        if not page.relieve(over, shorten=setting.profile.fill == "downgrade"):
            return None


def _beside(held: Held, focus: Sequence[Found], setting: Setting, new: Sequence[Scored]) -> list[Considered]:
    """The candidates, best first, without what stands in focus by now, and with the new ones among them."""
    taken, passed = ({found.memory_id for found in lines} for lines in (focus, held.focus))
    places = {c.memory_id: FOCUSED if c.memory_id in taken else PASSED for c in held.considered}
    known = [
        c._replace(placed=_out(c, places[c.memory_id])) if c.memory_id in taken | passed else c for c in held.considered
    ]
    telling = Telling(setting, [*focus, *(c.scored.found for c in known if c.detail)])
    best_first = sorted(new, key=lambda s: (-s.score, s.found.memory_id))
    entering = [_entering(s, setting, taken, telling) for s in best_first]
    return sorted([*entering, *known], key=lambda c: (-c.score, c.memory_id))


def _entering(scored: Scored, setting: Setting, taken: set[UUID], telling: Telling) -> Considered:
    found = scored.found
    why = excluded(found, setting, taken=taken) or telling.of(found)
    tokens = candidate(scored, setting.day_tokens).summary_tokens
    placed = Placed(found.memory_id, None, 0, why) if why else Placed(found.memory_id, "summary", tokens, NEW)
    return Considered(scored._replace(score=ENTERS), placed)


def _out(considered: Considered, reason: str) -> Placed:
    return Placed(considered.memory_id, None, 0, reason)


@dataclass(slots=True)
class _Page:
    """What is in so far, and what had to give way."""

    considered: list[Considered]
    focus: list[Found]
    gave_way: dict[UUID, str]
    day_tokens: DayTokens

    def relieve(self, over: int, *, shorten: bool) -> bool:
        """Makes room for at least so many tokens, if there is so much to be had; False when nothing can give way."""
        freed = 0
        for place, change in self._ways(shorten=shorten):
            if freed >= over:
                break
            freed += self.considered[place].tokens - change.tokens
            self.considered[place] = self.considered[place]._replace(placed=change)
            self.gave_way[change.memory_id] = change.reason
        if freed:
            return True
        if self.focus:
            oldest = self.focus.pop(0)
            self.gave_way[oldest.memory_id] = LEFT
            return True
        return False

    def _ways(self, *, shorten: bool) -> Iterator[tuple[int, Placed]]:
        """What each may become, the lowest-scored first: first all that can be shortened, then all that can leave."""
        places = range(len(self.considered) - 1, -1, -1)
        for place in places if shorten else ():
            one = self.considered[place]
            short = candidate(one.scored, self.day_tokens).micro_tokens
            if one.detail == "summary" and short <= one.tokens // THIRD:
                yield place, Placed(one.memory_id, "micro", short, SHORTENED)
        for place in places:
            if self.considered[place].detail:
                yield place, _out(self.considered[place], LEFT)
