"""Training data for the correction of relevance: contexts, and the items that replies used."""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

import numpy as np
from asyncpg import Record

from newton.cognition.assembly.relevance_floor import ANSWER_KINDS, RelevanceFloor
from newton.cognition.bundles.trace import StoredCandidate, decode_candidates, decode_trace
from newton.cognition.relevance_model import JudgedContext
from newton.cognition.scoring.reply_usage import find_used
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.bundles", "training_data.sql")

MAX_CONTEXTS = 1_000  # latest contexts used for training


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


async def load_judged_contexts(tx: Tx, *, agent_id: UUID) -> list[JudgedContext]:
    """Return the latest contexts whose reply used at least one item, with the items that were judged as answers.

    The probabilities are those of the shipped model, without the correction that was in use. Replies that used no item
    are skipped, because a short acknowledgement says nothing about the items.
    """
    rows = await SQL["list_judged"].fetch_all(tx, agent_id=agent_id, max_rows=MAX_CONTEXTS)
    answered = [context for row in rows if (context := _decode_answered(row)).floor.judges_answers]
    forms = await _load_forms(tx, answered, agent_id=agent_id)
    judged = [_judge_context(context, forms) for context in answered]
    return [context for context in judged if context.is_used.any()]


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
