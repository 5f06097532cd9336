"""The decisions of a period and of the period before it, for the growth report."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.brain import queries, repeated_mistakes
from newton.brain.decision_versions import RECORD_REFS
from newton.brain.draft import ReviewedDecision
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.brain.repeated_mistakes import AssessedPair, DecisionVector, FailurePair, RepeatReport, Vector
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.times.time_expressions import ReportPeriods

SQL = load("newton.brain", "growth_queries.sql")

MAX_OVERDUE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCounts:
    """The counts of one period: decisions made, decisions overdue at its end, and repeated mistakes."""

    made: int
    overdue: int
    repeats: RepeatReport


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionGrowth:
    """The decisions of a period and of the period before it.

    `reviewed` are all reviewed decisions until now, in order. `overdue` are those whose review is overdue the longest.
    """

    reviewed: tuple[ReviewedDecision, ...]
    now: DecisionCounts
    before: DecisionCounts
    overdue: tuple[DecisionSummary, ...]


async def read_growth(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> DecisionGrowth:
    """Return the decisions, outcomes and repeated mistakes of both periods."""
    made = await _list_decision_vectors(tx, periods, agent_id=agent_id)
    failures = repeated_mistakes.find_near_failures(made, since=periods.before)
    pairs = await _assess_pairs(tx, made, failures, agent_id=agent_id)
    due = DecisionFilter(due=True, limit=MAX_OVERDUE)
    reviewed = await queries.list_reviewed_decisions(tx, agent_id=agent_id)

    async def count(decisions: Sequence[DecisionVector], end: datetime) -> DecisionCounts:
        ((overdue,),) = await SQL["count_overdue"].fetch_all(tx, agent_id=agent_id, now=end)
        repeats = repeated_mistakes.summarize_repeats(decisions, pairs)
        return DecisionCounts(made=len(decisions), overdue=overdue, repeats=repeats)

    return DecisionGrowth(
        reviewed=tuple(one for one in reviewed if one.reviewed_at <= periods.now),
        now=await count([one for one in made if periods.is_current(one.decided_at)], periods.now),
        before=await count([one for one in made if periods.is_previous(one.decided_at)], periods.start),
        overdue=tuple(await queries.list_decisions(tx, due, agent_id=agent_id, now=periods.now)),
    )


async def _list_decision_vectors(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> list[DecisionVector]:
    """Return the decisions of both periods with their vectors.

    A separate query reads the vectors, because a join without table statistics takes many times as long.
    """
    arguments = {"agent_id": agent_id, "since": periods.before, "now": periods.now, "records": RECORD_REFS}
    rows = await SQL["list_decided"].fetch_all(tx, **arguments)
    vectors = await _read_vectors(tx, [row["decision_id"] for row in rows], agent_id=agent_id)
    kinds = [frozenset(queries.parse_kinds(row["reason_kinds"])) for row in rows]
    columns = [{name: value for name, value in row.items() if name != "reason_kinds"} for row in rows]
    return [
        DecisionVector(**row, reason_kinds=own, vector=vectors.get(row["decision_id"]))
        for row, own in zip(columns, kinds, strict=True)
    ]


async def _read_vectors(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> dict[UUID, Vector]:
    model = await SQL["find_main_model"].fetch_one(tx, agent_id=agent_id)
    if model is None:
        return {}
    rows = await SQL["list_vectors"].fetch_all(tx, agent_id=agent_id, model_id=model["model_id"], memory_ids=memory_ids)
    return {row["memory_id"]: row["embedding"].to_numpy().astype("float32") for row in rows}


async def _assess_pairs(
    tx: Tx, decisions: Sequence[DecisionVector], pairs: Sequence[FailurePair], *, agent_id: UUID
) -> list[AssessedPair]:
    made, failed = [pair.decision_id for pair in pairs], [pair.failed_id for pair in pairs]
    rows = await SQL["assess_pairs"].fetch_all(tx, agent_id=agent_id, decision_ids=made, failed_ids=failed)
    by_id = {one.decision_id: one for one in decisions}
    return [
        AssessedPair(pair=pair, decided_at=decision.decided_at, outcome=decision.outcome, **row)
        for pair, row in zip(pairs, rows, strict=True)
        for decision in (by_id[pair.decision_id],)
    ]
