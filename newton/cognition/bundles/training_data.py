"""Training data for score weights: contexts, the items that replies used, and outcomes of decisions."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import numpy as np
from asyncpg import Record

from newton.cognition.assembly.relevance_floor import ANSWER_KINDS, RelevanceFloor
from newton.cognition.bundles.trace import StoredCandidate, decode_candidates, decode_trace
from newton.cognition.corrections.answer_correction import JudgedContext
from newton.cognition.scoring.reply_usage import find_used
from newton.cognition.scoring.score import NEUTRAL_FEATURES
from newton.cognition.scoring.weight_fit import TrainingCase
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.bundles", "training_data.sql")

MAX_CONTEXTS = 1_000  # latest contexts used for training
DECISION_WINDOW = timedelta(hours=1)  # a decision within this time is attributed to the context
OUTCOME_WEIGHTS = {"success": 2.0, "failure": 0.5}  # weight of a context by the outcome of its decision


class _AnsweredContext(NamedTuple):
    """A stored context with the reply to it, and the candidates that it showed."""

    row: Record
    feature_names: Sequence[str]
    shown: Sequence[StoredCandidate]
    floor: RelevanceFloor


def _decode_answered(row: Record) -> _AnsweredContext:
    trace = decode_trace(row["trace"], input_text=row["input"])
    candidates, _ = decode_candidates(trace, row["memory_ids"], row["candidates"])
    shown = [candidate for candidate in candidates if candidate.detail]
    return _AnsweredContext(row, trace.features, shown, trace.assembly_input.relevance_floor)


async def load_cases(tx: Tx, *, agent_id: UUID, profile: str, features: Sequence[str]) -> list[TrainingCase]:
    """Return training cases: the latest answered contexts of the profile of which the reply used some items only."""
    rows = await SQL["list_answered"].fetch_all(tx, agent_id=agent_id, profile=profile, max_rows=MAX_CONTEXTS)
    answered = [_decode_answered(row) for row in rows]
    forms = await _load_forms(tx, answered, agent_id=agent_id)
    cases = [_create_case(context, forms, features) for context in answered]
    reviewed = await SQL["list_reviewed_decisions"].fetch_all(tx, agent_id=agent_id)
    outcomes = [(row["decided_at"], row["outcome"]) for row in reviewed]
    return [case for case in weight_by_outcome(cases, outcomes) if case.is_informative]


async def load_judged_contexts(tx: Tx, *, agent_id: UUID) -> list[JudgedContext]:
    """Return the latest answered contexts of which the reply used an item, with the items that were judged as answers.

    The probabilities are those of the shipped model, without the correction that was in use. A reply that used
    nothing is left out: it may be a nod, which says nothing about the items.
    """
    rows = await SQL["list_judged"].fetch_all(tx, agent_id=agent_id, max_rows=MAX_CONTEXTS)
    answered = [context for row in rows if (context := _decode_answered(row)).floor.judges_answers]
    forms = await _load_forms(tx, answered, agent_id=agent_id)
    judged = [_judge_context(context, forms) for context in answered]
    return [context for context in judged if context.is_used.any()]


async def find_most_used_profile(tx: Tx, *, agent_id: UUID) -> str | None:
    """Return the profile with the most contexts that a model answered; None if there are none."""
    row = await SQL["find_most_used_profile"].fetch_one(tx, agent_id=agent_id)
    return row["profile"] if row else None


def weight_by_outcome(cases: Sequence[TrainingCase], outcomes: Sequence[tuple[datetime, str]]) -> list[TrainingCase]:
    """Sort the cases by time, and set weights: the last case before a decision is weighted by its outcome. Pure.

    `outcomes` are pairs (time of the decision, outcome). Cases older than `DECISION_WINDOW` at the decision are not
    affected.
    """
    ordered = sorted(cases, key=lambda case: case.created_at)
    times = [case.created_at for case in ordered]
    for decided_at, outcome in outcomes:
        index = bisect_right(times, decided_at) - 1
        if index >= 0 and decided_at - times[index] <= DECISION_WINDOW:
            ordered[index] = replace(ordered[index], weight=OUTCOME_WEIGHTS.get(outcome, 1.0))
    return ordered


async def _load_forms(tx: Tx, contexts: Sequence[_AnsweredContext], *, agent_id: UUID) -> Mapping[UUID, Record]:
    shown_ids = list({candidate.memory_id for context in contexts for candidate in context.shown})
    rows = await SQL["list_forms"].fetch_all(tx, agent_id=agent_id, memory_ids=shown_ids)
    return {row["memory_id"]: row for row in rows}


def _find_used(answered: _AnsweredContext, forms: Mapping[UUID, Record]) -> Set[UUID]:
    """Return the ids of the shown items that the reply used."""
    texts = {
        candidate.memory_id: forms[candidate.memory_id][candidate.detail or "summary"]
        for candidate in answered.shown
        if candidate.memory_id in forms
    }
    return find_used(answered.row["reply"], texts, input_text=answered.row["input"])


def _judge_context(answered: _AnsweredContext, forms: Mapping[UUID, Record]) -> JudgedContext:
    used, correction = _find_used(answered, forms), answered.floor.correction
    place = answered.feature_names.index("answers")
    judged = [
        candidate
        for candidate in answered.shown
        if candidate.features[place] > 0 and candidate.memory_id in forms and _is_answer(forms[candidate.memory_id])
    ]
    return JudgedContext(
        created_at=answered.row["created_at"],
        session_id=answered.row["session_id"],
        probabilities=np.array([correction.invert(candidate.features[place]) for candidate in judged]),
        is_used=np.array([candidate.memory_id in used for candidate in judged], dtype=np.bool_),
    )


def _is_answer(form: Record) -> bool:
    return form["kind"] in ANSWER_KINDS


def _create_case(answered: _AnsweredContext, forms: Mapping[UUID, Record], features: Sequence[str]) -> TrainingCase:
    used = _find_used(answered, forms)
    rows = [dict(zip(answered.feature_names, candidate.features, strict=True)) for candidate in answered.shown]
    table = [[row.get(name, NEUTRAL_FEATURES[name]) for name in features] for row in rows]
    return TrainingCase(
        created_at=answered.row["created_at"],
        session_id=answered.row["session_id"],
        features=np.array(table, dtype=np.float64).reshape(-1, len(features)),
        is_used=np.array([candidate.memory_id in used for candidate in answered.shown], dtype=np.bool_),
    )
