"""Decisions of two periods, read for the growth report."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.brain import queries
from newton.brain.draft import ReviewedDecision
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.brain.repeated_mistakes import (
    AssessedPair,
    DecisionVector,
    FailurePair,
    RepeatReport,
    Vector,
    find_near_failures,
    summarize_repeats,
)
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.time_expressions import ReportPeriods

SQL = load("newton.brain", "growth_queries.sql")

MAX_OVERDUE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCounts:
    """Decisions of a period: those made, those overdue at its end, and repeated mistakes."""

    made: int
    overdue: int
    repeats: RepeatReport


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionGrowth:
    """Decisions of both periods. `reviewed` is the whole record in decision order; `overdue` the longest overdue."""

    reviewed: tuple[ReviewedDecision, ...]
    now: DecisionCounts
    before: DecisionCounts
    overdue: tuple[DecisionSummary, ...]


async def read_growth(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> DecisionGrowth:
    """Read the decisions and outcomes of both periods."""
    made = await _list_decision_vectors(tx, periods, agent_id=agent_id)
    weighed = await _assess_pairs(tx, made, find_near_failures(made, since=periods.before), agent_id=agent_id)
    now = [one for one in made if periods.is_current(one.decided_at)]
    before = [one for one in made if periods.is_previous(one.decided_at)]
    due = await queries.list_decisions(
        tx, DecisionFilter(due=True, limit=MAX_OVERDUE), agent_id=agent_id, now=periods.now
    )
    late = [
        (await SQL["count_overdue"].fetch_all(tx, agent_id=agent_id, now=at))[0][0]
        for at in (periods.now, periods.start)
    ]
    judged = await queries.list_reviewed_decisions(tx, agent_id=agent_id)
    return DecisionGrowth(
        reviewed=tuple(one for one in judged if one.reviewed_at <= periods.now),
        now=DecisionCounts(made=len(now), overdue=late[0], repeats=summarize_repeats(now, weighed)),
        before=DecisionCounts(made=len(before), overdue=late[1], repeats=summarize_repeats(before, weighed)),
        overdue=tuple(due),
    )


async def _list_decision_vectors(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> list[DecisionVector]:
    """Read the vectors in a separate query: a join with a table just filled takes many times as long."""
    rows = await SQL["list_decided"].fetch_all(tx, agent_id=agent_id, since=periods.before, now=periods.now)
    vectors = await _read_vectors(tx, [row["decision_id"] for row in rows], agent_id=agent_id)
    return [DecisionVector(**row, vector=vectors.get(row["decision_id"])) for row in rows]


async def _read_vectors(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> dict[UUID, Vector]:
    model = await SQL["find_main_model"].fetch_one(tx, agent_id=agent_id)
    if model is None:
        return {}
    rows = await SQL["list_vectors"].fetch_all(tx, agent_id=agent_id, model_id=model["model_id"], memory_ids=memory_ids)
    return {row["memory_id"]: row["embedding"].to_numpy().astype("float32") for row in rows}


async def _assess_pairs(
    tx: Tx, decisions: Sequence[DecisionVector], pairs: Sequence[FailurePair], *, agent_id: UUID
) -> list[AssessedPair]:
    rows = await SQL["assess_pairs"].fetch_all(
        tx,
        agent_id=agent_id,
        decision_ids=[pair.decision_id for pair in pairs],
        failed_ids=[pair.failed_id for pair in pairs],
    )
    known = {one.decision_id: one for one in decisions}
    return [
        AssessedPair(
            pair=pair,
            decided_at=known[pair.decision_id].decided_at,
            outcome=known[pair.decision_id].outcome,
            description=row["description"],
            failed_description=row["failed"],
            shares_tag=row["sharing"],
            answered=row["answered"],
            shown=row["shown"],
        )
        for pair, row in zip(pairs, rows, strict=True)
    ]
