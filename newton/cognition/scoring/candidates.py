"""Merging of the memories from all sources, and of the nearest ones, into the candidates of a context. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from uuid import UUID

from newton.cognition.questions.question_rules import (
    ANSWERED_KINDS,
    MemoryOrigin,
    QuestionGathering,
    QuestionReading,
    is_reply,
)
from newton.cognition.relevance_model import RelevanceModel
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.relevance import (
    MIN_QUESTION,
    NO_ESTIMATE,
    AnswerEstimate,
    create_estimator,
    estimate_answers,
    list_telling,
    read_words,
)
from newton.cognition.scoring.reply_usage import extract_keywords
from newton.cognition.scoring.score import (
    NO_SIGNALS,
    QuerySignals,
    ScoredMemory,
    TrialCounts,
    create_scorer,
    place_in_profile,
)
from newton.cognition.sources.gathered_data import GatheredSources
from newton.cognition.sources.observations import ObservationVerdict, choose_observations
from newton.cognition.sources.signals import asks_for_times, asks_only_about_time
from newton.content.frames import Frame
from newton.content.profiles import GatherOptions, Profile
from newton.fault_isolation import compute_part
from newton.heart.procedures import match_triggers
from newton.memory.memory import PERSON_TIERS, Kind, past_reason
from newton.memory.memory_reader import DATED_KINDS
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.text.questions import is_only_question, opens_question
from newton.text.time_expressions import TimeRange

NEAREST = "among the memories that are nearest to the question"

OWN_TOKENS, OTHER_TOKENS = 700, 250  # of the facts nearest to a question about the person, and to another one
UNLIKELY_FACTS = 2  # that a question gets which they hardly answer
MESSAGE_TOKENS = 200  # of the messages nearest to a question that memory hardly answers
LONG_KINDS: frozenset[Kind] = frozenset({"episode", "passage"})
NEAREST_TEXTS = 2  # of these for such a question: of each the part that is nearest
# Minimum cosine of the nearest fact to the question. "How do I ..." mostly asks for knowledge of the world.
MIN_OWN_COSINE, MIN_OTHER_COSINE, MIN_METHOD_COSINE = 0.1, 0.2, 0.3
NEAR_OWN_COSINE, NEAR_OTHER_COSINE = 0.2, 0.27  # the minimum of the same if memory knows the subject of the question
MIN_MESSAGE_COSINE = 0.2
MIN_SHARE = 0.3  # of the cosine of the nearest fact, for each other one
CLEAR_COSINE, MIN_CLEAR_SHARE = 0.5, 0.45  # beside a fact as near as this, those that are far from it say nothing
MIN_OTHER_QUESTION = 0.08  # of the probability that memory answers a question, below which it hardly does
RANK_OFFSET = 5  # added to both ranks before they are combined: the higher, the less the first places count

_METHOD = re.compile(
    r"\b(?:how (?:do|can|could|should|would)|(?:where|what) (?:can|could|should|would)) (?:i|we)\b", re.IGNORECASE
)


def select_nearest(result: RecallResult, reading: QuestionReading, answers: AnswerEstimate) -> frozenset[UUID]:
    """Return the ids of the memories nearest to a question that one memory can answer.

    They are current facts, and if memory hardly answers the question, messages of the person and long texts. None is
    selected if all are too far, if probabilities of an answer are unknown, or if no memory has the question's names.
    """
    question = result.query.question
    if answers.question is None or reading.kind not in ANSWERED_KINDS:
        return frozenset()
    if not (opens_question(question) or is_only_question(question)):
        return frozenset()
    if not reading.is_first_person and read_words(question).names and not answers.knows_names:
        return frozenset()
    is_hardly_known = not answers.knows_names and answers.question < MIN_QUESTION
    facts = _select_facts(result, reading, answers, is_hardly_known=is_hardly_known)
    return frozenset((*facts, *_select_texts(result, answers)) if is_hardly_known else facts)


def _select_facts(
    result: RecallResult, reading: QuestionReading, answers: AnswerEstimate, *, is_hardly_known: bool
) -> Iterator[UUID]:
    """Yield the ids of the current facts nearest to a question, within a limit of tokens; none if all are too far."""
    facts = [f for f in result.memories if f.kind == "fact" and not (f.quarantined or past_reason(f.kind, f.state))]
    best = max(map(result.find_answer_similarity, facts), default=0.0)
    if reading.is_first_person:
        is_method = _METHOD.search(result.query.question)
        minimum, near, max_tokens = MIN_METHOD_COSINE if is_method else MIN_OWN_COSINE, NEAR_OWN_COSINE, OWN_TOKENS
    else:
        minimum, near, max_tokens = MIN_OTHER_COSINE, NEAR_OTHER_COSINE, OTHER_TOKENS
    is_unlikely = best < near or (not reading.is_first_person and (answers.question or 0.0) < MIN_OTHER_QUESTION)
    if best < (minimum if is_hardly_known else max(minimum, near)):
        return
    share = MIN_CLEAR_SHARE if best >= CLEAR_COSINE else MIN_SHARE
    close = [f for f in _rank(facts, result, answers) if result.find_answer_similarity(f) >= share * best]
    yield from _fit(close[:UNLIKELY_FACTS] if is_unlikely else close, max_tokens)


def _select_texts(result: RecallResult, answers: AnswerEstimate) -> Iterator[UUID]:
    """Yield the ids of the person's messages and of the long texts nearest to a question that none answers well."""
    if _METHOD.search(result.query.question):
        return
    asked = (f for f in result.memories if f.kind == "exchange" and f.trust in PERSON_TIERS and not is_reply(f))
    messages = [f for f in asked if not (f.quarantined or f.is_only_question)]
    if max(map(result.find_answer_similarity, messages), default=0.0) >= MIN_MESSAGE_COSINE:
        yield from _fit(_rank(messages, result, answers), MESSAGE_TOKENS)
    long = [f for f in result.memories if f.kind in LONG_KINDS and f.window and not f.quarantined]
    near = [f for f in long if result.find_answer_similarity(f) >= MIN_MESSAGE_COSINE]
    yield from (f.memory_id for f in _rank(near, result, answers)[:NEAREST_TEXTS])


def _rank(
    memories: Sequence[RetrievedMemory], result: RecallResult, answers: AnswerEstimate
) -> Sequence[RetrievedMemory]:
    """Sort memories, best first, by reciprocal rank fusion of their cosine and their probability of being an answer."""

    def place(key: Callable[[RetrievedMemory], float]) -> dict[UUID, int]:
        ordered = sorted(memories, key=lambda f: (-key(f), f.memory_id))
        return {f.memory_id: RANK_OFFSET + rank for rank, f in enumerate(ordered)}

    near, likely = place(result.find_answer_similarity), place(answers.find)
    return sorted(memories, key=lambda f: (-1 / near[f.memory_id] - 1 / likely[f.memory_id], f.memory_id))


def _fit(memories: Sequence[RetrievedMemory], max_tokens: int) -> Iterator[UUID]:
    for found in memories:
        max_tokens -= found.summary_tokens
        if max_tokens < 0:
            return
        yield found.memory_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
    """The candidates of a context, and how they relate to the input.

    `recent_ids` are candidates from recent events. `triggered` are procedures that the input asks for. `unranked` were
    found by name, time or trigger, or are nearest to the question, and need no minimum similarity. `injected` were put
    into the context of the session by a caller. `is_range_empty` means that memory has nothing from `time_ranges`.
    `relation_evidence` maps relations to the candidate facts that state them, `observations` events to the decision
    whether they are shown. `answers` are the probabilities that candidates answer the input.
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
    gathering: QuestionGathering


def collect_candidates(
    gathered: GatheredSources,
    request: ContextBuildRequest,
    *,
    reach: GatherOptions,
    frame: str,
    relevance_model: RelevanceModel,
    missing: MutableMapping[str, str],
) -> CandidateSet:
    """Merge the memories from all sources, each once, as far as `reach` (the profile's limits) allows.

    A memory that the search also found keeps the evidence of the search. Facts that contradict a found fact are added.
    A part of the computation that fails is entered in `missing`.
    """
    text, result = request.input, gathered.recall_result
    other_sessions = chain.from_iterable(gathered.recent_events.other_sessions[: reach.sessions])
    recent = [*gathered.recent_events.current_session[: reach.events], *other_sessions]
    judge = partial(_judge_observations, gathered, request, reach=reach)
    verdicts = compute_part("choice of tool results", judge, default=None, missing=missing)
    # an event may come from anywhere, so none is taken without a verdict
    observations = () if verdicts is None else gathered.observations
    observed = {one.memory.memory_id: one.memory for one in observations}
    own_observations = {one.memory.memory_id for one in observations if one.is_own}
    searched = {f.memory_id: f for f in result.memories}
    limit = partial(_limit_related, gathered, reach)
    related = compute_part("entities", limit, default=(), missing=missing)
    added = (*recent, *related, *gathered.person.memories, *gathered.procedures, *gathered.injected)
    others = {f.memory_id: f for f in added}
    contradictions = {f.memory_id: f for f in result.contradictions}
    memories = contradictions | others | searched | observed | {f.memory_id: f for f in gathered.artifacts.found}
    signals, answers = _compute_signals(gathered, memories, text, relevance_model, missing)
    match = partial(_find_triggered, gathered, text, frame)
    triggered = compute_part("procedure triggers", match, default=frozenset[UUID](), missing=missing)
    asked_by_time = signals.timely_ids if asks_only_about_time(text, gathered.time_ranges) else ()
    timely = [f for f in memories.values() if f.memory_id in signals.timely_ids]
    select = partial(select_nearest, result, gathered.gathering.reading, answers)
    nearest = compute_part("nearest memories", select, default=frozenset[UUID](), missing=missing)
    standing, origins = gathered.gathering.standing, _find_origins(gathered, recent, triggered, searched)
    return CandidateSet(
        memories=[f for f in memories.values() if gathered.filters.allows_kind(f.kind)],
        recent_ids=frozenset(f.memory_id for f in recent if f.memory_id not in searched) | own_observations,
        triggered=triggered,
        unranked=frozenset((*others, *gathered.injected_ids, *triggered, *asked_by_time, *standing, *nearest)),
        injected=gathered.injected_ids,
        relation_evidence=_find_relation_evidence(gathered.input_matches.entity_matches.evidence, memories),
        observations=verdicts or {},
        answers=answers,
        gathering=_complete_gathering(gathered, memories.values(), nearest, origins),
        time_ranges=gathered.time_ranges,
        is_range_empty="times" not in missing and _is_range_empty(gathered, timely, text),
        signals=signals,
    )


def _complete_gathering(
    gathered: GatheredSources,
    memories: Iterable[RetrievedMemory],
    nearest: Set[UUID],
    origins: Mapping[UUID, MemoryOrigin],
) -> QuestionGathering:
    """Return how the candidates were gathered, with the reasons of those that were not ranked by the search."""
    found, person = gathered.gathering, gathered.person
    return replace(
        found,
        origins=origins,
        reasons={**dict.fromkeys(nearest, NEAREST), **found.reasons, **person.reasons},
        inherited=frozenset(f.memory_id for f in memories if f.is_inherited),
        about=person.sections,
        asks_person=person.question.is_asked,
        asks_changes=person.question.changes is not None,
    )


def score_candidates(
    found: CandidateSet, frame: Frame, profile: Profile, *, now: datetime, missing: MutableMapping[str, str]
) -> list[ScoredMemory]:
    """Return the candidates with their scores; if that fails, with scores that ignore their relations to the input."""

    def score_all(signals: QuerySignals) -> list[ScoredMemory]:
        score = create_scorer(frame=frame, profile=profile, now=now, signals=signals)
        return place_in_profile([score(one) for one in found.memories], found.gathering.about)

    scored = compute_part("scores", partial(score_all, found.signals), default=None, missing=missing)
    return score_all(NO_SIGNALS) if scored is None else scored


def _compute_signals(
    gathered: GatheredSources,
    memories: Mapping[UUID, RetrievedMemory],
    text: str,
    model: RelevanceModel,
    missing: MutableMapping[str, str],
) -> tuple[QuerySignals, AnswerEstimate]:
    """Return how the memories relate to the input, and the probabilities that they answer it."""
    result, matches = gathered.recall_result, gathered.input_matches
    entities, correction = matches.entity_matches, gathered.session_state.answer_correction
    telling = compute_part("earlier questions", partial(list_telling, result), default=result.memories, missing=missing)
    estimate = partial(estimate_answers, model, result, telling=telling, correction=correction)
    answers = compute_part("answers", estimate, default=NO_ESTIMATE, missing=missing)
    relevance = partial(create_estimator, model, result, telling=telling)
    timely = partial(_find_timely, gathered, memories.values())
    signals = QuerySignals(
        keywords=compute_part("keywords", partial(extract_keywords, text), default=frozenset(), missing=missing),
        mentioned_ids=entities.mentioned_ids,
        salience=entities.salience,
        hops=entities.distances,
        trials={p.memory_id: TrialCounts(p.successes, p.successes + p.failures) for p in matches.procedure_triggers},
        timely_ids=compute_part("times", timely, default=frozenset[UUID](), missing=missing),
        task_ids=frozenset(f.memory_id for f in memories.values() if gathered.task.contains(f)),
        estimate_relevance=compute_part("relevance", relevance, default=NO_SIGNALS.estimate_relevance, missing=missing),
        estimate_answer=answers.find,
    )
    return signals, answers


def _find_triggered(gathered: GatheredSources, text: str, frame: str) -> frozenset[UUID]:
    """Return the ids of the procedures that the input asks for."""
    matches = gathered.input_matches
    types = matches.entity_matches.entity_types
    return frozenset(p.memory_id for p in match_triggers(matches.procedure_triggers, text, types=types, frame=frame))


def _find_origins(
    gathered: GatheredSources,
    recent: Sequence[RetrievedMemory],
    triggered: Set[UUID],
    searched: Mapping[UUID, RetrievedMemory],
) -> dict[UUID, MemoryOrigin]:
    """Return why each memory is a candidate, by id; the strongest reason counts. Search results are left out."""
    entities, own = gathered.input_matches.entity_matches, gathered.recent_events.current_session
    own_ids, related = {f.memory_id for f in own}, [f.memory_id for f in entities.memories]
    other_origins: Sequence[tuple[MemoryOrigin, Iterable[UUID]]] = (
        ("contradicts", (f.memory_id for f in gathered.recall_result.contradictions)),
        ("about", gathered.person.sections),
        ("salient", related),
        ("related", (memory_id for memory_id in related if memory_id in entities.distances)),
        ("named", entities.mentioned_ids),
        ("recent_elsewhere", (f.memory_id for f in recent)),
        ("recent", (f.memory_id for f in recent if f.memory_id in own_ids)),
        ("artifact", (f.memory_id for f in gathered.artifacts.found)),
    )
    always: Sequence[tuple[MemoryOrigin, Iterable[UUID]]] = (
        ("triggered", triggered),
        ("standing", gathered.gathering.standing),
        ("injected", gathered.injected_ids),
    )
    origins: dict[UUID, MemoryOrigin] = {}
    for origin, ids in other_origins:
        origins |= {memory_id: origin for memory_id in ids if memory_id not in searched}
    for origin, ids in always:
        origins |= dict.fromkeys(ids, origin)
    return origins


def _judge_observations(
    gathered: GatheredSources, request: ContextBuildRequest, *, reach: GatherOptions
) -> Mapping[UUID, ObservationVerdict]:
    """Return the verdicts on the found events, except rejections of events that are judged like other memories.

    Those are trusted events: the last ones of the session, if the profile includes other sessions, and those of other
    sessions that the search found. A request to fill the budget selects all events of the session.
    """
    found, recent = gathered.observations, gathered.recent_events.current_session
    verdicts = choose_observations(
        found, request.input, sent=request.sent_messages, time_ranges=gathered.time_ranges, takes_own=request.fill
    )
    latest_ids = {f.memory_id for f in recent[: reach.events]} if reach.sessions else set[UUID]()
    found_ids = {f.memory_id for f in gathered.recall_result.memories} - {f.memory.memory_id for f in found if f.is_own}
    undecided = {f.memory.memory_id for f in found if not f.memory.quarantined} & (latest_ids | found_ids)
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
    is_asked = is_of_input and not gathered.person.question.changes and asks_for_times(text, gathered.time_ranges)
    is_searched = gathered.missing.keys().isdisjoint(("times", "memories"))
    return is_asked and is_searched and all(f.is_only_question or f.repeats_query(text) for f in timely_memories)


def _limit_related(gathered: GatheredSources, reach: GatherOptions) -> list[RetrievedMemory]:
    entities = gathered.input_matches.entity_matches
    excess = set(entities.salient_ids[reach.salient :]) - set(entities.salient_ids[: reach.salient])
    near = (f for f in entities.memories if entities.distances.get(f.memory_id, 0) <= reach.depth)
    return [found for found in near if found.memory_id not in excess]
