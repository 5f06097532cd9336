"""Incremental update of a context without a search: adds new memories, evicts the lowest-scored. Pure."""

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

NEW_MEMORY_SCORE = 1.0  # as high as the best search result
SHORTENING_DIVISOR = 3  # a short form has at most 1/3 of the tokens

REASON_NEW = "new since the context was made"
REASON_IN_FOCUS = "already in Current Focus"
REASON_SHORTENED = "shortened to make room"
REASON_EVICTED = "left to make room"
REASON_LEFT_FOCUS = "newer lines took its place in Current Focus"


class ContextAdditions(NamedTuple):
    """New material: messages that left the view, latest first, and scored memories."""

    lines: Sequence[RetrievedMemory] = ()
    memories: Sequence[ScoredMemory] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedContext:
    """The updated context, with the memories added and evicted."""

    assembly: AssemblyResult
    added: tuple[UUID, ...]
    evicted: Mapping[UUID, str]


class PreviousContext(NamedTuple):
    """The candidates of the previous context, best first, and its Current Focus."""

    candidates: Sequence[ScoredCandidate]
    focus: Sequence[RetrievedMemory]


def update_context(
    previous: PreviousContext, assembly_input: AssemblyInput, additions: ContextAdditions
) -> UpdatedContext | None:
    """Return the context with the additions, within the total budget.

    Over budget, the lowest-scored items are shortened to a third or less, then evicted; the oldest focus lines go last.
    Returns None when the fixed sections alone exceed the budget.
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
    """Merge old and new candidates, best first, and reject those in focus."""
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
    """The candidates and focus lines kept so far, and the evicted ones."""

    candidates: list[ScoredCandidate]
    focus: list[RetrievedMemory]
    evicted: dict[UUID, str]
    day_tokens: DayTokens

    def free_tokens(self, needed_tokens: int, *, shorten: bool) -> bool:
        """Free at least `needed_tokens` if possible; return False when nothing can be evicted."""
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
        """Yield placements, lowest-scored first: all that can be shortened, then all that can be evicted."""
        places = range(len(self.candidates) - 1, -1, -1)
        for place in places if shorten else ():
            one = self.candidates[place]
            short = to_fill_candidate(one.scored, self.day_tokens).micro_tokens
            if one.detail == "summary" and short <= one.tokens // SHORTENING_DIVISOR:
                yield place, Placement(one.memory_id, "micro", short, REASON_SHORTENED)
        for place in places:
            if self.candidates[place].detail:
                yield place, _reject(self.candidates[place], REASON_EVICTED)
