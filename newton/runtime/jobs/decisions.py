"""Jobs on decisions: review reminders, calibration snapshots and ledger verification."""

from collections.abc import Sequence

from newton.brain import queries
from newton.brain.calibration import snapshots
from newton.brain.hash_chain import BrokenLink
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.runtime.jobs.job import format_count
from newton.runtime.jobs.queue import JobOutcome, RunResult
from newton.runtime.wiring import AgentServices

MAX_REMINDERS = 50


async def remind_reviews(newton: AgentServices) -> JobOutcome:
    due = await newton.decisions("job remind").list_decisions(DecisionFilter(due=True, limit=MAX_REMINDERS))
    return to_reminder_outcome(due)


def to_reminder_outcome(due: Sequence[DecisionSummary]) -> JobOutcome:
    """Return the job outcome with the ids of overdue decisions.

    Their texts are left out, because they may be erased.
    """
    if not due:
        return JobOutcome(reason="no decision is past its review date")
    since = min(one.look_again_at for one in due if one.look_again_at)
    reason = f"{format_count(len(due), 'decision')} past the review date; the oldest date is {since:%Y-%m-%d}"
    return JobOutcome(reason=reason, result={"decisions": [str(one.decision_id) for one in due]})


async def take_calibration_snapshot(newton: AgentServices) -> JobOutcome:
    scope = newton.scope
    async with scope.transaction() as tx:
        reviewed = await queries.list_reviewed_decisions(tx, agent_id=scope.agent_id)
        snapshot_count = await snapshots.get_last_review_count(tx, agent_id=scope.agent_id)
    reason = find_snapshot_reason(len(reviewed), snapshot_count)
    if reason is None:
        return JobOutcome(reason="the last calibration snapshot includes every reviewed decision")

    async def write(tx: Tx) -> RunResult:
        await snapshots.take_snapshot(tx, agent_id=scope.agent_id, now=scope.now(), count_tokens=scope.count_tokens)
        return {"judged": len(reviewed)}

    return JobOutcome(reason=reason, write=write)


def find_snapshot_reason(reviewed_count: int, snapshot_count: int) -> str | None:
    """Return the reason to take a calibration snapshot; None if no decision was reviewed since the last one.

    `snapshot_count` is the number of reviewed decisions that the last snapshot includes.
    """
    if reviewed_count == snapshot_count:
        return None
    reviewed = format_count(reviewed_count, "decision")
    return f"{reviewed} reviewed; the last calibration snapshot includes {snapshot_count:,}"


async def verify_ledger(newton: AgentServices) -> JobOutcome:
    """Verify the hash chain of the decision log. Raises ConflictError for a broken chain, which no retry repairs."""
    head = await newton.decisions("job verify").verify_chain()
    if isinstance(head, BrokenLink):
        raise ConflictError(
            f"The log of decisions is damaged at record {head.seq}: {head.reason}.",
            hint="Restore the database from a backup, and record the decisions made after the backup again.",
        )
    if not head.seq:
        return JobOutcome(reason="no decision is recorded yet")
    reason = f"{format_count(head.seq, 'record')} of the decision log verified; none was changed"
    return JobOutcome(reason=reason, result={"records": head.seq})
