"""Jobs on decisions: reminders, calibration, the weekly report and ledger verification."""

from collections.abc import Sequence

from newton.agent.growth.report import GrowthMetrics
from newton.agent.growth.rules import GrowthAssessment, assess
from newton.brain import queries
from newton.brain.calibration import snapshots
from newton.brain.hash_chain import BrokenLink
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.runtime.jobs.job import Job, format_count
from newton.runtime.jobs.queue import JobOutcome, RunResult
from newton.runtime.jobs.schedule import daily, weekly
from newton.runtime.wiring import AgentServices

MAX_REMINDERS = 50


async def remind_reviews(newton: AgentServices) -> JobOutcome:
    due = await newton.decisions("job remind").list_decisions(DecisionFilter(due=True, limit=MAX_REMINDERS))
    return to_reminder_outcome(due)


def to_reminder_outcome(due: Sequence[DecisionSummary]) -> JobOutcome:
    """Return the ids of the decisions past their review date; texts stay where they can be erased. Pure."""
    if not due:
        return JobOutcome(reason="no decision is past its review date")
    since = min(one.look_again_at for one in due if one.look_again_at)
    because = f"{format_count(len(due), 'decision')} past the review date, the first since {since:%Y-%m-%d}"
    return JobOutcome(reason=because, result={"decisions": [str(one.decision_id) for one in due]})


async def take_calibration_snapshot(newton: AgentServices) -> JobOutcome:
    async with newton.scope.transaction() as tx:
        judged = await queries.list_reviewed_decisions(tx, agent_id=newton.scope.agent_id)
        noted = await snapshots.get_last_review_count(tx, agent_id=newton.scope.agent_id)
    plan = find_snapshot_reason(len(judged), noted)
    if plan is None:
        return JobOutcome(reason="the last snapshot knows every outcome")

    async def write(tx: Tx) -> RunResult:
        await snapshots.take_snapshot(
            tx, agent_id=newton.scope.agent_id, now=newton.scope.now(), count_tokens=newton.scope.count_tokens
        )
        return {"judged": len(judged)}

    return JobOutcome(reason=plan, write=write)


def find_snapshot_reason(reviewed_count: int, snapshot_count: int) -> str | None:
    """Return the reason to take a calibration snapshot, or None. Pure."""
    if reviewed_count == snapshot_count:
        return None
    return f"{format_count(reviewed_count, 'outcome')} known, and the last snapshot was taken of {snapshot_count:,}"


async def report_growth(newton: AgentServices) -> JobOutcome:
    report = await newton.growth().report_weeks()
    return to_growth_outcome(report.metrics, assess(report))


def to_growth_outcome(metrics: GrowthMetrics, assessment: GrowthAssessment) -> JobOutcome:
    """Return the figures of the week without text that may name procedures. Pure."""
    counts = {
        "strengths": len(assessment.strengths),
        "concerns": len(assessment.concerns),
        "recommendations": len(assessment.recommendations),
    }
    week = {name: getattr(metrics, name).now for name in ("made", "judged", "overdue", "learnt", "confirmed")}
    did: RunResult = {**counts, **{name: value for name, value in week.items() if value is not None}}
    told = ", ".join(format_count(number, name.removesuffix("s")) for name, number in counts.items())
    return JobOutcome(reason=f"a week is over: {told}; `newton growth` tells them", result=did)


async def verify_ledger(newton: AgentServices) -> JobOutcome:
    """Verify the decision ledger. Raises ConflictError, which no retry repairs, for a broken chain."""
    found = await newton.decisions("job verify").verify_chain()
    if isinstance(found, BrokenLink):
        raise ConflictError(
            f"The ledger of decisions is broken at record {found.seq}: {found.reason}.",
            hint="Restore the database from a backup; what was decided since can be told again.",
        )
    if not found.seq:
        return JobOutcome(reason="no decision was made yet")
    return JobOutcome(reason=f"all {found.seq:,} records are as they were written", result={"records": found.seq})


JOBS = (
    Job(name="remind", description="Lists decisions that await an outcome.", schedule=daily(7), run=remind_reviews),
    Job(
        name="calibrate",
        description="Takes a snapshot of confidence calibration.",
        schedule=daily(4),
        run=take_calibration_snapshot,
    ),
    Job(
        name="growth",
        description="Reports the agent's growth metrics.",
        schedule=weekly("Monday", 6),
        run=report_growth,
    ),
    Job(name="verify", description="Verifies the ledger of decisions.", schedule=daily(4, 30), run=verify_ledger),
)
