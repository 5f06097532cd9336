"""Merge of all sources into one set of candidates. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.cognition.scoring.reply_usage import extract_keywords
from newton.cognition.scoring.score import QuerySignals, TrialCounts
from newton.cognition.sources.gathered_data import GatheredSources
from newton.cognition.sources.signals import asks_only_about_time
from newton.content.profiles import GatherOptions
from newton.heart.procedure_matching import match_triggers
from newton.memory.search_types import RetrievedMemory
from newton.memory.time_expressions import TimeRange
from newton.memory.time_search import DATED_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """The candidates of a context.

    `recent_ids` came from recent events. `triggered` are procedures that the input asks for. `unranked` came by name,
    time or trigger, so their similarity is not judged. `is_range_empty`: memory has nothing of `time_ranges`.
    """

    memories: Sequence[RetrievedMemory]
    recent_ids: frozenset[UUID]
    triggered: frozenset[UUID]
    unranked: frozenset[UUID]
    signals: QuerySignals
    time_ranges: Sequence[TimeRange]
    is_range_empty: bool


def collect_candidates(gathered: GatheredSources, text: str, *, reach: GatherOptions, frame: str) -> CandidateSet:
    """Return the gathered memories within the profile's `reach`, each once.

    A memory that the search found keeps its search evidence.
    """
    late = [
        *gathered.recent_events.current_session[: reach.events],
        *(f for one in gathered.recent_events.other_sessions[: reach.sessions] for f in one),
    ]
    searched = {f.memory_id: f for f in gathered.recall_result.memories}
    unsearched = {f.memory_id: f for f in (*late, *_limit_related(gathered, reach), *gathered.procedures)}
    every = unsearched | searched | {f.memory_id: f for f in gathered.artifacts.found}
    patterns, known = gathered.input_matches.procedure_triggers, gathered.input_matches.entity_matches
    asked = {p.memory_id for p in match_triggers(patterns, text, types=known.entity_types, frame=frame)}
    timely = _find_timely(gathered, every.values())
    then = timely if asks_only_about_time(text, gathered.time_ranges) else frozenset[UUID]()
    return CandidateSet(
        memories=[f for f in every.values() if gathered.filters.allows_kind(f.kind)],
        recent_ids=frozenset(f.memory_id for f in late if f.memory_id not in searched),
        triggered=frozenset(asked),
        unranked=frozenset(unsearched) | asked | then,
        time_ranges=gathered.time_ranges,
        is_range_empty=_is_range_empty(gathered, [f for f in every.values() if f.memory_id in timely], text),
        signals=QuerySignals(
            keywords=extract_keywords(text),
            mentioned_ids=known.mentioned_ids,
            salience=known.salience,
            hops=known.distances,
            trials={p.memory_id: TrialCounts(p.successes, p.successes + p.failures) for p in patterns},
            timely_ids=timely,
        ),
    )


def _find_timely(gathered: GatheredSources, memories: Iterable[RetrievedMemory]) -> frozenset[UUID]:
    """Return the memories in the time ranges of the input."""
    if not gathered.time_ranges:
        return frozenset()
    late = (
        f
        for f in memories
        if f.kind in DATED_KINDS and any(span.contains(f.occurred_at) for span in gathered.time_ranges)
    )
    return frozenset(gathered.recall_result.in_time_range) | {f.memory_id for f in late}


def _is_range_empty(gathered: GatheredSources, timely_memories: Iterable[RetrievedMemory], text: str) -> bool:
    """Return True when nothing informative is in the time range. Questions do not count.

    Ranges of filters are excluded: unmatched filters are reported separately.
    """
    searched = (
        gathered.time_ranges != gathered.filters.time_ranges
        and "times" not in gathered.missing
        and "memories" not in gathered.missing
    )
    return searched and all(f.is_only_question or f.repeats_query(text) for f in timely_memories)


def _limit_related(gathered: GatheredSources, reach: GatherOptions) -> Iterable[RetrievedMemory]:
    known = gathered.input_matches.entity_matches
    unasked = set(known.salient_ids) - set(known.salient_ids[: reach.salient])
    for found in known.memories:
        if found.memory_id not in unasked and known.distances.get(found.memory_id, 0) <= reach.depth:
            yield found
