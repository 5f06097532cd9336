"""Merging of the memories from all sources into the candidates of a context. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.answers import AnswerEstimate, estimate_answers
from newton.cognition.scoring.observation_choice import ObservationVerdict, choose_observations
from newton.cognition.scoring.relevance import create_estimator, list_telling
from newton.cognition.scoring.reply_usage import extract_keywords
from newton.cognition.scoring.score import QuerySignals, TrialCounts
from newton.cognition.sources.gathered_data import GatheredSources
from newton.cognition.sources.signals import asks_for_times, asks_only_about_time
from newton.content.profiles import GatherOptions
from newton.content.relevance_model import RelevanceModel
from newton.heart.procedure_matching import match_triggers
from newton.memory.search_types import RetrievedMemory
from newton.memory.times.time_expressions import TimeRange
from newton.memory.times.time_search import DATED_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """The candidates of a context, and what is known of them from the input.

    `recent_ids` are candidates from recent events. `triggered` are procedures that the input asks for. `unranked` were
    found by name, time or trigger and need no minimum similarity. `injected` were put into the context of the session
    by a caller. `is_range_empty` means that memory has nothing from `time_ranges`. `relation_evidence` maps relations
    to the candidate facts that state them. `observations` says of events whether they are chosen, and why. `answers`
    says with which probabilities the candidates answer the input.
    """

    memories: Sequence[RetrievedMemory]
    recent_ids: frozenset[UUID]
    triggered: frozenset[UUID]
    unranked: frozenset[UUID]
    injected: frozenset[UUID]
    signals: QuerySignals
    time_ranges: Sequence[TimeRange]
    is_range_empty: bool
    relation_evidence: Mapping[UUID, Sequence[UUID]]
    observations: Mapping[UUID, ObservationVerdict]
    answers: AnswerEstimate


def collect_candidates(
    gathered: GatheredSources,
    request: ContextBuildRequest,
    *,
    reach: GatherOptions,
    frame: str,
    relevance_model: RelevanceModel,
) -> CandidateSet:
    """Merge the memories from all sources, each once, as far as `reach` (the profile's limits) allows.

    A memory that the search also found keeps the evidence of the search. Facts that contradict a found fact are added.
    """
    text = request.input
    other_sessions = chain.from_iterable(gathered.recent_events.other_sessions[: reach.sessions])
    recent = [*gathered.recent_events.current_session[: reach.events], *other_sessions]
    observed = {one.memory.memory_id: one.memory for one in gathered.observations}
    own_observations = {one.memory.memory_id for one in gathered.observations if one.is_own}
    verdicts = _judge_observations(gathered, request, reach=reach)
    searched = {f.memory_id: f for f in gathered.recall_result.memories}
    others = (*recent, *_limit_related(gathered, reach), *gathered.procedures, *gathered.injected)
    unsearched = {f.memory_id: f for f in others}
    contradictions = {f.memory_id: f for f in gathered.recall_result.contradictions}
    memories = contradictions | unsearched | searched | observed | {f.memory_id: f for f in gathered.artifacts.found}
    triggers, entities = gathered.input_matches.procedure_triggers, gathered.input_matches.entity_matches
    triggered = {p.memory_id for p in match_triggers(triggers, text, types=entities.entity_types, frame=frame)}
    timely = _find_timely(gathered, memories.values())
    asked_by_time = timely if asks_only_about_time(text, gathered.time_ranges) else ()
    telling = list_telling(gathered.recall_result)
    correction = gathered.session_state.answer_correction
    answers = estimate_answers(relevance_model, gathered.recall_result, telling=telling, correction=correction)
    unranked = {*unsearched, *gathered.injected_ids, *triggered, *asked_by_time, *gathered.gathering.standing}
    return CandidateSet(
        memories=[f for f in memories.values() if gathered.filters.allows_kind(f.kind)],
        recent_ids=frozenset(f.memory_id for f in recent if f.memory_id not in searched) | own_observations,
        triggered=frozenset(triggered),
        unranked=frozenset(unranked),
        injected=gathered.injected_ids,
        relation_evidence=_find_relation_evidence(entities.evidence, memories),
        observations=verdicts,
        answers=answers,
        time_ranges=gathered.time_ranges,
        is_range_empty=_is_range_empty(gathered, [f for f in memories.values() if f.memory_id in timely], text),
        signals=QuerySignals(
            keywords=extract_keywords(text),
            mentioned_ids=entities.mentioned_ids,
            salience=entities.salience,
            hops=entities.distances,
            trials={p.memory_id: TrialCounts(p.successes, p.successes + p.failures) for p in triggers},
            timely_ids=timely,
            task_ids=frozenset(f.memory_id for f in memories.values() if gathered.task.contains(f)),
            estimate_relevance=create_estimator(relevance_model, gathered.recall_result, telling=telling),
            estimate_answer=answers.find,
        ),
    )


def _judge_observations(
    gathered: GatheredSources, request: ContextBuildRequest, *, reach: GatherOptions
) -> Mapping[UUID, ObservationVerdict]:
    """Return the verdicts on the events that were found, without those that the other rules decide about.

    Those are trusted events: the last ones of the session under a profile that reaches to other sessions, and those of
    other sessions that the search found. To fill the budget, all events of the session are taken.
    """
    found, recent = gathered.observations, gathered.recent_events.current_session
    verdicts = choose_observations(
        found, request.input, sent=request.sent_messages, time_ranges=gathered.time_ranges, takes_own=request.fill
    )
    taken = {f.memory_id for f in recent[: reach.events]} if reach.sessions else set[UUID]()
    others = {f.memory_id for f in gathered.recall_result.memories} - {f.memory.memory_id for f in found if f.is_own}
    undecided = {f.memory.memory_id for f in found if not f.memory.quarantined} & (taken | others)
    return {i: verdict for i, verdict in verdicts.items() if verdict.is_chosen or i not in undecided}


def _find_relation_evidence(
    evidence: Mapping[UUID, Sequence[UUID]], memories: Mapping[UUID, RetrievedMemory]
) -> dict[UUID, list[UUID]]:
    """Map each relation among the memories to the facts among them that state it."""
    stated = {i: [fact for fact in facts if fact in memories] for i, facts in evidence.items() if i in memories}
    return {relation_id: facts for relation_id, facts in stated.items() if facts}


def _find_timely(gathered: GatheredSources, memories: Iterable[RetrievedMemory]) -> frozenset[UUID]:
    """Return the ids of the memories in the time ranges of the input."""
    if not (ranges := gathered.time_ranges):
        return frozenset()
    dated = (f for f in memories if f.kind in DATED_KINDS)
    timely = {f.memory_id for f in dated if any(span.contains(f.occurred_at) for span in ranges)}
    return frozenset(gathered.recall_result.in_time_range) | timely


def _is_range_empty(gathered: GatheredSources, timely_memories: Iterable[RetrievedMemory], text: str) -> bool:
    """Return True when the input asks for a time from which memory has nothing but questions.

    Return False if the input only names the time, or if the range comes from the filters of the request, because
    unmatched filters are reported separately.
    """
    is_of_input = gathered.time_ranges != gathered.filters.time_ranges
    is_asked = is_of_input and asks_for_times(text, gathered.time_ranges)
    is_searched = gathered.missing.keys().isdisjoint(("times", "memories"))
    return is_asked and is_searched and all(f.is_only_question or f.repeats_query(text) for f in timely_memories)


def _limit_related(gathered: GatheredSources, reach: GatherOptions) -> list[RetrievedMemory]:
    entities = gathered.input_matches.entity_matches
    excess = set(entities.salient_ids[reach.salient :]) - set(entities.salient_ids[: reach.salient])
    near = (f for f in entities.memories if entities.distances.get(f.memory_id, 0) <= reach.depth)
    return [found for found in near if found.memory_id not in excess]
