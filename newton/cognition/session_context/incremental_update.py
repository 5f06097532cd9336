"""Update of a context: adds new memories, evicts those with the lowest scores, or keeps what stands. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.assembler import (
    AssemblyResult,
    compose,
    is_of_other_session,
    select_focus,
    to_fill_candidate,
)
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.exclusion_rules import (
    REPEATS_STATED_FACT,
    MemoryDeduplicator,
    find_exclusion_reason,
    find_repeated_messages,
)
from newton.cognition.assembly.fill import OVER_LIMIT, FillPlacement
from newton.cognition.assembly.relevance_floor import ANSWER_INDEX, PROBABILITY_INDEX
from newton.cognition.assembly.scored_candidate import SHOWN_TOGETHER, STANDS, ScoredCandidate, limit_new_passages
from newton.cognition.bundles.bundle import Bundle, ContextUpdate
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.score import ScoredMemory
from newton.memory.search_types import RetrievedMemory

NEW_MEMORY_SCORE = 1.0  # as high as the best search result
STANDING_DISCOUNT = 10.0  # more than any score: what stands for an earlier input ranks below what this one needs
MAX_STANDING_SHARE = 0.5  # of the budget, for what stands and this input does not need
SHORTENING_DIVISOR = 3  # an item is shortened only to 1/3 of its tokens or less

REASON_ADDED = "added after the context was built"
REASON_IN_FOCUS = "already in Current Focus"
REASON_SHORTENED = "shortened to free tokens"
REASON_EVICTED = "evicted to free tokens"
REASON_LEFT_FOCUS = "replaced in Current Focus by newer lines"


class ContextAdditions(NamedTuple):
    """Memories to add to a context: `lines` are messages that are no longer sent, latest first; `memories` are new."""

    lines: Sequence[RetrievedMemory] = ()
    memories: Sequence[ScoredMemory] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedContext:
    """The updated context with the ids of the memories added and of those evicted, with reasons."""

    assembly: AssemblyResult
    added: tuple[UUID, ...]
    evicted: Mapping[UUID, str]


class PreviousContext(NamedTuple):
    """The candidates of the previous context, best first, and the memories in its section Current Focus."""

    candidates: Sequence[ScoredCandidate]
    focus: Sequence[RetrievedMemory]


def update_context(
    previous: PreviousContext, assembly_input: AssemblyInput, additions: ContextAdditions
) -> UpdatedContext | None:
    """Add memories to a context within its total budget.

    If the context exceeds its budget, first the items with the lowest scores get their shorter micro forms, where these
    have at most a third of the tokens; then items are evicted, and last the oldest lines of the section Current Focus.
    Return None when the fixed sections alone exceed the budget.
    """
    line_ids = [found.memory_id for found in additions.lines]
    focus = select_focus(assembly_input, added_ids=frozenset(line_ids))
    focus_ids = {found.memory_id for found in focus}
    evicted = {found.memory_id: REASON_LEFT_FOCUS for found in previous.focus if found.memory_id not in focus_ids}
    candidates = _merge_candidates(previous, focus, assembly_input, additions.memories)
    state = _EvictionState(candidates, focus, evicted, assembly_input)
    while True:
        assembly = compose(state.candidates, assembly_input, focus=state.focus)
        excess = assembly.block.tokens - assembly_input.budget.total
        if excess <= 0:
            new_ids = (*line_ids, *(scored.found.memory_id for scored in additions.memories))
            present = {*(f.memory_id for f in assembly.focus), *(c.memory_id for c in assembly.candidates if c.detail)}
            added = tuple(memory_id for memory_id in new_ids if memory_id in present)
            return UpdatedContext(assembly=assembly, added=added, evicted=state.evicted)
        if not state.free_tokens(excess, shorten=assembly_input.profile.fill == "downgrade"):
            return None


def extend_context(standing: Bundle, found: Bundle, *, request: ContextBuildRequest, reason: str) -> Bundle:
    """Return the context `found` for an input together with the items of the `standing` one.

    If these are of no use for the input and take more than their share of the budget, or all do not fit, return
    `found`, which is a context built anew.
    """
    kept, previous = _list_kept(standing, found), standing.assembly_input
    inputs, total = found.assembly_input, min(max(standing.budget, found.budget), request.tokens)
    inputs = replace(
        inputs,
        budget=replace(inputs.budget, total=total),
        fact_labels={**previous.fact_labels, **inputs.fact_labels},
        observations={**previous.observations, **inputs.observations},
        gathering=replace(inputs.gathering, about={**previous.gathering.about, **inputs.gathering.about}),
    )
    kept_ids = {c.memory_id for c in kept}
    candidates = [*(c for c in found.candidates if c.memory_id not in kept_ids), *kept]
    candidates.sort(key=lambda c: (-c.score, c.memory_id))
    assembly = compose(candidates, inputs, focus=found.focus)
    if sum(c.tokens for c in kept) > MAX_STANDING_SHARE * total or assembly.block.tokens > total:
        return found
    before = {c.memory_id for c in standing.items}
    added = tuple(c.memory_id for c in found.items if c.memory_id not in before)
    return replace(
        found,
        text=assembly.block.text,
        tokens=assembly.block.tokens,
        budget=total,
        assembly_input=inputs,
        layers=assembly.layers,
        candidates=assembly.candidates,
        update=ContextUpdate(previous_bundle_id=standing.bundle_id, reason=reason, added=added, evicted={}),
    )


def _list_kept(standing: Bundle, found: Bundle) -> list[ScoredCandidate]:
    """Return the items of the standing context that the one found lacks, without those that repeat its items.

    The profile of a person is that for which the input asks.
    """
    is_asked = found.assembly_input.gathering.asks_person
    shown = [*found.focus, *(c.scored.found for c in found.items)]
    shown_ids, deduplicator = {one.memory_id for one in shown}, MemoryDeduplicator(found.identity, shown)
    kept = [c for c in standing.items if c.memory_id not in shown_ids and not (is_asked and c.scored.section)]
    kept = [c for c in kept if not deduplicator.find_duplicate_reason(c.scored.found)]
    repeated = find_repeated_messages([*shown, *(c.scored.found for c in kept)])
    judged = {c.memory_id: c.scored.features for c in found.candidates}
    return [_keep_standing(c, judged.get(c.memory_id)) for c in kept if c.memory_id not in repeated]


def _keep_standing(c: ScoredCandidate, judged: tuple[float, ...] | None) -> ScoredCandidate:
    """Return an item of the last context with its features for another input; None if that did not find it."""
    features = list(judged or c.scored.features)
    if judged is None:
        features[ANSWER_INDEX] = features[PROBABILITY_INDEX] = 0.0
    score = c.score if c.reason == STANDS else c.score - STANDING_DISCOUNT
    reason = c.reason if c.reason == SHOWN_TOGETHER else STANDS
    return c._replace(
        scored=c.scored._replace(features=tuple(features), score=score), placement=c.placement._replace(reason=reason)
    )


def _merge_candidates(
    previous: PreviousContext,
    focus: Sequence[RetrievedMemory],
    assembly_input: AssemblyInput,
    new_memories: Sequence[ScoredMemory],
) -> list[ScoredCandidate]:
    """Merge previous and new candidates, best first, and reject those that are in the section Current Focus."""
    focus_ids, added = {found.memory_id for found in focus}, {scored.found.memory_id for scored in new_memories}
    reasons = {found.memory_id: REASON_LEFT_FOCUS for found in previous.focus}
    reasons |= dict.fromkeys(focus_ids, REASON_IN_FOCUS)
    known = [
        c._replace(placement=_reject(c, reasons[c.memory_id])) if c.memory_id in reasons else c
        for c in previous.candidates
        if c.memory_id not in added
    ]
    deduplicator = MemoryDeduplicator(assembly_input.identity, [*focus, *(c.scored.found for c in known if c.detail)])
    best_first = sorted(new_memories, key=lambda s: (-s.score, s.found.memory_id))
    new = [_place_new_memory(s, assembly_input, focus_ids, deduplicator) for s in best_first]
    new = _limit_new_messages(new, assembly_input)
    repeated = find_repeated_messages(c.scored.found for c in (*known, *new) if c.detail)
    new = [c._replace(placement=_reject(c, REPEATS_STATED_FACT)) if c.memory_id in repeated else c for c in new]
    new = limit_new_passages(new, known, assembly_input.artifact_selector.policy)
    return sorted([*new, *known], key=lambda c: (-c.score, c.memory_id))


def _place_new_memory(
    scored: ScoredMemory, assembly_input: AssemblyInput, focus_ids: set[UUID], deduplicator: MemoryDeduplicator
) -> ScoredCandidate:
    found = scored.found
    sizes = to_fill_candidate(scored, assembly_input)
    reason = find_exclusion_reason(found, assembly_input, focus_ids=focus_ids)
    placement = FillPlacement(found.memory_id, sizes.entry_detail, sizes.entry_tokens, REASON_ADDED)
    if reason := reason or deduplicator.find_duplicate_reason(found):
        placement = FillPlacement(found.memory_id, None, 0, reason)
    return ScoredCandidate(scored._replace(score=NEW_MEMORY_SCORE), placement)


def _limit_new_messages(new: Sequence[ScoredCandidate], assembly_input: AssemblyInput) -> list[ScoredCandidate]:
    """Return the new candidates, best first. Messages of other sessions beyond their limit are left out."""
    free_tokens, limited = assembly_input.budget.other_sessions, list[ScoredCandidate]()
    for c in new:
        if free_tokens is None or not c.detail or not is_of_other_session(c.scored, assembly_input):
            limited.append(c)
        elif c.tokens > free_tokens:
            limited.append(c._replace(placement=_reject(c, OVER_LIMIT)))
        else:
            free_tokens -= c.tokens
            limited.append(c)
    return limited


def _reject(candidate: ScoredCandidate, reason: str) -> FillPlacement:
    return FillPlacement(candidate.memory_id, None, 0, reason)


@dataclass(slots=True)
class _EvictionState:
    """The candidates and focus lines of the context while items are evicted, and the evicted ones with reasons."""

    candidates: list[ScoredCandidate]
    focus: list[RetrievedMemory]
    evicted: dict[UUID, str]
    assembly_input: AssemblyInput

    def free_tokens(self, needed_tokens: int, *, shorten: bool) -> bool:
        """Shorten (if `shorten`) or evict the items with the lowest scores until `needed_tokens` are free.

        If no item is left, evict the oldest focus line. Return True if any tokens were freed, even too few.
        """
        freed = 0
        for index, placement in self._list_options(shorten=shorten):
            if freed >= needed_tokens:
                break
            freed += self.candidates[index].tokens - placement.tokens
            self.candidates[index] = self.candidates[index]._replace(placement=placement)
            self.evicted[placement.memory_id] = placement.reason
        if not freed and self.focus:
            self.evicted[self.focus.pop(0).memory_id] = REASON_EVICTED
            return True
        return bool(freed)

    def _list_options(self, *, shorten: bool) -> Iterator[tuple[int, FillPlacement]]:
        """Yield (index, new placement): first for each item that can be shortened, then for each that can be evicted.

        Both are in ascending order of scores. Contradicting facts are one item, evicted with the fact that was placed.
        Memories that a caller has put into the context stay.
        """
        kept = self.assembly_input.injected
        indexes = [
            n
            for n in reversed(range(len(self.candidates)))
            if self.candidates[n].reason != SHOWN_TOGETHER and self.candidates[n].memory_id not in kept
        ]
        for index in indexes if shorten else ():
            item = self.candidates[index]
            tokens = to_fill_candidate(item.scored, self.assembly_input).micro_tokens
            if item.detail not in (None, "micro") and tokens <= item.tokens // SHORTENING_DIVISOR:
                yield index, FillPlacement(item.memory_id, "micro", tokens, REASON_SHORTENED)
        for index in indexes:
            if self.candidates[index].detail:
                yield index, _reject(self.candidates[index], REASON_EVICTED)
