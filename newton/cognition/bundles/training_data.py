"""Training data from answered contexts: items used by the reply, and outcomes of later decisions."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from asyncpg import Record

from newton.cognition.bundles.trace import StoredCandidate, decode_candidates, decode_trace
from newton.cognition.scoring.reply_usage import find_used
from newton.cognition.scoring.score import NEUTRAL_FEATURES
from newton.cognition.scoring.weight_fit import TrainingCase
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.bundles", "training_data.sql")

MAX_CONTEXTS = 1_000
DECISION_WINDOW = timedelta(hours=1)  # a decision within this time is attributed to the context
OUTCOME_WEIGHTS = {"success": 2.0, "failure": 0.5}  # weight of a context by the outcome of its decision


@dataclass(frozen=True, slots=True)
class _AnsweredContext:
    """A stored context with its reply."""

    row: Record
    feature_names: Sequence[str]
    shown: Sequence[StoredCandidate]


def _decode_answered(row: Record) -> _AnsweredContext:
    trace = decode_trace(row["trace"], input_text=row["input"])
    candidates, _ = decode_candidates(trace, row["memory_ids"], row["candidates"])
    return _AnsweredContext(row, trace.features, [kept for kept in candidates if kept.detail])


async def load_cases(tx: Tx, *, agent_id: UUID, profile: str, features: Sequence[str]) -> list[TrainingCase]:
    """Return the latest informative contexts of the profile that a model answered."""
    rows = await SQL["list_answered"].fetch_all(tx, agent_id=agent_id, profile=profile, max_rows=MAX_CONTEXTS)
    answered = [_decode_answered(row) for row in rows]
    known = {kept.memory_id for one in answered for kept in one.shown}
    forms = {
        r["memory_id"]: r for r in await SQL["list_forms"].fetch_all(tx, agent_id=agent_id, memory_ids=list(known))
    }
    made = [_create_case(one, forms, features) for one in answered]
    judged = [
        (r["decided_at"], r["outcome"]) for r in await SQL["list_reviewed_decisions"].fetch_all(tx, agent_id=agent_id)
    ]
    return [case for case in weight_by_outcome(made, judged) if case.is_informative]


async def find_most_used_profile(tx: Tx, *, agent_id: UUID) -> str | None:
    """Return the profile with the most contexts answered by a model; None without any."""
    row = await SQL["find_most_used_profile"].fetch_one(tx, agent_id=agent_id)
    return row["profile"] if row else None


def weight_by_outcome(cases: Sequence[TrainingCase], outcomes: Sequence[tuple[datetime, str]]) -> list[TrainingCase]:
    """Return the cases in chronological order, each last one before a decision weighted by its outcome. Pure."""
    ordered = sorted(cases, key=lambda case: case.created_at)
    times = [case.created_at for case in ordered]
    for decided_at, outcome in outcomes:
        place = bisect_right(times, decided_at) - 1
        if place >= 0 and decided_at - times[place] <= DECISION_WINDOW:
            ordered[place] = replace(ordered[place], weight=OUTCOME_WEIGHTS.get(outcome, 1.0))
    return ordered


def _create_case(
    answered: _AnsweredContext, memory_texts: Mapping[UUID, Record], features: Sequence[str]
) -> TrainingCase:
    texts = {
        kept.memory_id: memory_texts[kept.memory_id]["micro" if kept.detail == "micro" else "summary"]
        for kept in answered.shown
        if kept.memory_id in memory_texts
    }
    used = find_used(answered.row["reply"], texts, input_text=answered.row["input"])
    rows = [dict(zip(answered.feature_names, kept.features, strict=True)) for kept in answered.shown]
    table = [[given.get(name, NEUTRAL_FEATURES[name]) for name in features] for given in rows]
    return TrainingCase(
        created_at=answered.row["created_at"],
        session_id=answered.row["session_id"],
        features=np.array(table, dtype=np.float64).reshape(-1, len(features)),
        is_used=np.array([kept.memory_id in used for kept in answered.shown], dtype=np.bool_),
    )
