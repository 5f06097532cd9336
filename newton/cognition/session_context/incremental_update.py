"""A context brought up to date without a search: what is new enters first, and the lowest-scored gives way. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.assembler import (
    AssemblyInput,
    AssemblyResult,
    Deduplicator,
    compose,
    find_exclusion_reason,
    select_focus,
    to_fill_candidate,
)
from newton.cognition.assembly.fill import Placement
from newton.cognition.assembly.render import DayTokens
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.scoring.score import ScoredMemory
from newton.memory.search_types import RetrievedMemory

NEW_MEMORY_SCORE = 1.0  # the score of what is new: nothing that was found has a higher one
SHORTENING_DIVISOR = 3  # what is shortened is at most this part of what it was

REASON_NEW = "new since the context was made"
REASON_IN_FOCUS = "already in Current Focus"
REASON_SHORTENED = "shortened to make room"
REASON_EVICTED = "left to make room"
REASON_LEFT_FOCUS = "newer lines took its place in Current Focus"


class ContextAdditions(NamedTuple):
    """What is new: lines of the session that are out of view by now, the nearest first, and memories with a score."""

    lines: Sequence[RetrievedMemory] = ()
    memories: Sequence[ScoredMemory] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedContext:
    """The context as it is from now on, what entered it, and what became of that which had to give way."""

    assembly: AssemblyResult
    added: tuple[UUID, ...]
    evicted: Mapping[UUID, str]


class PreviousContext(NamedTuple):
    """What a context was made of: its candidates, best first, and what stood in its Current Focus."""

    candidates: Sequence[ScoredCandidate]
    focus: Sequence[RetrievedMemory]


def update_context(
    previous: PreviousContext, assembly_input: AssemblyInput, additions: ContextAdditions
) -> UpdatedContext | None:
    """A context with what is new beside what it held, in at most the setting's total of tokens.

    While that is too much, the lowest-scored are first shortened, to a third or less, then they leave; the oldest lines
    in focus go last. What stands in every context stays: None when that alone is too much.
    """
    focus = select_focus(assembly_input, added_ids=frozenset(found.memory_id for found in additions.lines))
    shown = {found.memory_id for found in focus}
    passed = {found.memory_id: REASON_LEFT_FOCUS for found in previous.focus if found.memory_id not in shown}
    page = _EvictionState(
        _merge_candidates(previous, focus, assembly_input, additions.memories), focus, passed, assembly_input.day_tokens
    )
    while True:
        assembly = compose(page.candidates, assembly_input, focus=page.focus)
        over = assembly.block.tokens - assembly_input.budget.total
        if over <= 0:
            new = (*(found.memory_id for found in additions.lines), *(s.found.memory_id for s in additions.memories))
            present = {*(f.memory_id for f in assembly.focus), *(c.memory_id for c in assembly.candidates if c.detail)}
            return UpdatedContext(
                assembly=assembly, added=tuple(one for one in new if one in present), evicted=page.evicted
            )
        if not page.free_tokens(over, shorten=assembly_input.profile.fill == "downgrade"):
            return None


def _merge_candidates(
    previous: PreviousContext,
    focus: Sequence[RetrievedMemory],
    assembly_input: AssemblyInput,
    new_memories: Sequence[ScoredMemory],
) -> list[ScoredCandidate]:
    """The candidates, best first, without what stands in focus by now, and with the new ones among them."""
    taken, passed = ({found.memory_id for found in lines} for lines in (focus, previous.focus))
    places = {c.memory_id: REASON_IN_FOCUS if c.memory_id in taken else REASON_LEFT_FOCUS for c in previous.candidates}
    known = [
        c._replace(placement=_reject(c, places[c.memory_id])) if c.memory_id in taken | passed else c
        for c in previous.candidates
    ]
    telling = Deduplicator(assembly_input, [*focus, *(c.scored.found for c in known if c.detail)])
    best_first = sorted(new_memories, key=lambda s: (-s.score, s.found.memory_id))
    entering = [_place_new_memory(s, assembly_input, taken, telling) for s in best_first]
    return sorted([*entering, *known], key=lambda c: (-c.score, c.memory_id))


def _place_new_memory(
    scored: ScoredMemory, assembly_input: AssemblyInput, focus_ids: set[UUID], deduplicator: Deduplicator
) -> ScoredCandidate:
    found = scored.found
    why = find_exclusion_reason(found, assembly_input, focus_ids=focus_ids) or deduplicator.find_duplicate_reason(found)
    tokens = to_fill_candidate(scored, assembly_input.day_tokens).summary_tokens
    placed = (
        Placement(found.memory_id, None, 0, why) if why else Placement(found.memory_id, "summary", tokens, REASON_NEW)
    )
    return ScoredCandidate(scored._replace(score=NEW_MEMORY_SCORE), placed)


def _reject(considered: ScoredCandidate, reason: str) -> Placement:
    return Placement(considered.memory_id, None, 0, reason)


@dataclass(slots=True)
class _EvictionState:
    """What is in so far, and what had to give way."""

    candidates: list[ScoredCandidate]
    focus: list[RetrievedMemory]
    evicted: dict[UUID, str]
    day_tokens: DayTokens

    def free_tokens(self, needed_tokens: int, *, shorten: bool) -> bool:
        """Makes room for at least so many tokens, if there is so much to be had; False when nothing can give way."""
        freed = 0
        for place, change in self._list_options(shorten=shorten):
            if freed >= needed_tokens:
                break
            freed += self.candidates[place].tokens - change.tokens
            self.candidates[place] = self.candidates[place]._replace(placement=change)
            self.evicted[change.memory_id] = change.reason
        if freed:
            return True
        if self.focus:
            oldest = self.focus.pop(0)
            self.evicted[oldest.memory_id] = REASON_EVICTED
            return True
        return False

    def _list_options(self, *, shorten: bool) -> Iterator[tuple[int, Placement]]:
        """What each may become, the lowest-scored first: first all that can be shortened, then all that can leave."""
        places = range(len(self.candidates) - 1, -1, -1)
        for place in places if shorten else ():
            one = self.candidates[place]
            short = to_fill_candidate(one.scored, self.day_tokens).micro_tokens
            if one.detail == "summary" and short <= one.tokens // SHORTENING_DIVISOR:
                yield place, Placement(one.memory_id, "micro", short, REASON_SHORTENED)
        for place in places:
            if self.candidates[place].detail:
                yield place, _reject(self.candidates[place], REASON_EVICTED)
