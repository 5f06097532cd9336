"""Jobs that maintain what an agent stores: its memories, its decisions, and what is kept for a limited time."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from newton.agent.maintenance.artifact_vectors import embed_artifacts
from newton.agent.maintenance.extracted_facts import ExtractionResult
from newton.agent.maintenance.service import WORKING_SET_RETENTION, LearningReport
from newton.agent.reconciliation.reconciler import ReconciliationResult
from newton.brain import queries
from newton.brain.calibration import snapshots
from newton.brain.hash_chain import BrokenLink
from newton.brain.queries import DecisionFilter, DecisionSummary
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import message_queues
from newton.errors import ConflictError, TokenQuotaError
from newton.heart.lifecycle.engine import LifecycleScope
from newton.memory import vectors
from newton.memory.store import PlannedTransition
from newton.memory.vectors import DrainResult, OutboxBacklog, reembed
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import Job, JobOutcome, RunResult, format_count
from newton.runtime.jobs.triggers import JobSchedule
from newton.runtime.wiring import AgentServices

SQL = load("newton.runtime.jobs", "maintenance.sql")

RUN_RETENTION = timedelta(days=30)  # retention of ended runs
# A table above both limits is overdue for a vacuum: autovacuum starts at a share of 0.2.
MIN_DEAD_SHARE, MIN_DEAD_ROWS = 0.25, 10_000


async def apply_retention(newton: AgentServices) -> JobOutcome:
    """Delete contexts, working memory and job runs that are older than their retention."""

    async def write(tx: Tx) -> RunResult:
        deleted = await newton.maintenance("job retain").apply_retention(tx)
        before = newton.scope.now() - RUN_RETENTION
        runs = await queue.delete_old_runs(tx, agent_id=newton.scope.agent_id, before=before)
        return {**deleted._asdict(), "runs": runs}

    return JobOutcome(
        reason=describe_retention(newton.settings.bundle_retention_days),
        write=write,
    )


def describe_retention(bundle_retention_days: int) -> str:
    """Return the retention periods as text. If `bundle_retention_days` is 0, stored contexts are kept forever."""
    contexts = f"{bundle_retention_days} days" if bundle_retention_days else "no limit"
    working_sets, runs = WORKING_SET_RETENTION.days, RUN_RETENTION.days
    return f"retention: contexts {contexts}, working memory {working_sets} days, runs {runs} days"


class TableStats(NamedTuple):
    """The estimated counts of live and dead rows of a table, and the time of its last vacuum."""

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None


async def check_vacuum(newton: AgentServices) -> JobOutcome:
    """Report the tables with so many dead rows that a person must run a vacuum."""
    async with newton.scope.transaction() as tx:
        tables = [
            TableStats(**row) for row in await SQL["list_table_stats"].fetch_all(tx, agent_id=newton.scope.agent_id)
        ]
    return to_vacuum_outcome(tables)


def to_vacuum_outcome(tables: Sequence[TableStats]) -> JobOutcome:
    """Return the job outcome with the tables whose share of dead rows requires a manual vacuum."""
    bad = [one for one in tables if one.dead >= MIN_DEAD_ROWS and one.dead >= MIN_DEAD_SHARE * (one.live + one.dead)]
    if not bad:
        return JobOutcome(reason="no table needs a manual vacuum")
    names = ", ".join(one.name for one in bad)
    reason = f"autovacuum is too slow: run `vacuum (analyze) {names}` as the owner of the tables"
    shares = {one.name: 100 * one.dead // (one.live + one.dead) for one in bad}
    return JobOutcome(reason=reason, result={"dead_percent": shares})


MAX_REMINDERS = 50


async def remind_reviews(newton: AgentServices) -> JobOutcome:
    """Report the decisions without an outcome whose review date has passed."""
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
    """Store the calibration (how well confidences match outcomes), if decisions were reviewed since the last time."""
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


REEMBED = "reembed"
LIFECYCLE = "lifecycle"
LIFECYCLE_TIMEOUT_SECONDS = 3_600  # of a run that embeds whatever waits, and compares it
EXTRACT = "extract"
MAX_REEMBEDDED_PER_RUN = 5_000  # memories; takes some minutes with the bundled model
MAX_ARTIFACTS_PER_RUN = 20  # whose passages are embedded; takes seconds each with the bundled model
EXPIRED_CONTEXTS = "expired_contexts"
NO_MODEL = "no chat model is configured"

LIFECYCLE_DESCRIPTIONS: dict[LifecycleScope, str] = {
    "fact": "Changes the states of facts by their sources and age.",
    "episode": "Summarizes and archives old episodes.",
    "procedure": "Changes the states of procedures by their success rates.",
    "censor": "Retires and restores censors (rules that block or warn) by their accuracy.",
    "caps": "Archives memories beyond the limit of their kind, and restores them when there is room again.",
}


async def embed_memories(newton: AgentServices) -> JobOutcome:
    """Embed all pending memories, and passages of artifacts (stored long texts).

    If the embedding model is unavailable, they stay pending until the next run.
    """
    drained = await newton.maintenance("job embed").process_pending(limit=None, passages=True)
    artifacts = await embed_artifacts(newton.scope, limit=MAX_ARTIFACTS_PER_RUN)
    async with newton.scope.transaction() as tx:
        backlog = await vectors.read_backlog(tx, agent_id=newton.scope.agent_id)
    return to_embed_outcome(drained, backlog, artifacts)


def to_embed_outcome(drained: DrainResult, backlog: OutboxBacklog, artifacts: int = 0) -> JobOutcome:
    """Return the outcome of the job `embed` from its counts and the number of memories that are still pending.

    `artifacts` is the number of artifacts whose passages were embedded.
    """
    attempts = drained.embedded + drained.failed
    left = {"waiting": backlog.waiting, "given_up": backlog.given_up}
    result: RunResult | None = None
    if attempts:
        embedded = {"embedded": drained.embedded, "refused": drained.failed}
        result = {**embedded, **({"artifacts": artifacts} if artifacts else {}), **left}
    if drained.stopped_by and backlog.waiting:
        pending = format_count(backlog.waiting, "memory is", "memories are")
        return JobOutcome(reason=f"{pending} not embedded yet: {drained.stopped_by}", result=result)
    if attempts:
        return JobOutcome(reason=f"{format_count(attempts, 'memory', 'memories')} to embed", result=result)
    if artifacts:
        reason = f"{format_count(artifacts, 'artifact', 'artifacts')} to embed"
        return JobOutcome(reason=reason, result={"artifacts": artifacts})
    return JobOutcome(reason="every memory is embedded")


async def reembed_memories(newton: AgentServices) -> JobOutcome:
    """Compute the vectors of up to `MAX_REEMBEDDED_PER_RUN` memories again with the newly configured model."""
    scope, configured = newton.scope, newton.configured_embedder
    if configured is None or scope.embedder is configured:
        return JobOutcome(reason="every vector is of the configured embedding model")
    done = await reembed(scope.db, configured, agent_id=scope.agent_id, now=scope.now(), limit=MAX_REEMBEDDED_PER_RUN)
    reason = "the configured embedding model has changed" + (f"; {done.stopped_by}" if done.stopped_by else "")
    return JobOutcome(reason=reason, result={"memories": done.embedded, "taken_over": int(done.is_active)})


async def summarize_sessions(newton: AgentServices) -> JobOutcome:
    """Summarize the sessions again that have enough new messages since their last summary."""
    count = await newton.maintenance("job summarize").update_summaries()
    if not count:
        return JobOutcome(reason="every summary is up to date")
    reason = f"{format_count(count, 'session')} had enough new messages for a new summary"
    return JobOutcome(reason=reason, result={"sessions": count})


async def generalize_facts(newton: AgentServices) -> JobOutcome:
    """Merge the current facts on one attribute of a subject into a few general ones, if there are too many."""
    count = await newton.maintenance("job generalize").generalize_facts()
    limit = newton.scope.thresholds.max_facts_per_attribute
    if not count:
        return JobOutcome(reason=f"no attribute has more than {limit} current facts")
    reason = f"{format_count(count, 'fact')} of attributes with more than {limit} current facts"
    return JobOutcome(reason=reason, result={"facts": count})


def lifecycle_job(kind: LifecycleScope, schedule: JobSchedule) -> Job:
    """Return the job, due at `schedule`, that changes the states of memories of one kind by the lifecycle rules."""

    async def run(newton: AgentServices) -> JobOutcome:
        return to_lifecycle_outcome(await newton.maintenance(f"job {name}").apply_transitions(kind))

    name = f"lifecycle-{kind}"
    return Job(name, LIFECYCLE_DESCRIPTIONS[kind], schedule, run)


async def run_lifecycle(newton: AgentServices) -> JobOutcome:
    """Do the daily maintenance of all kinds of memories at once."""
    report = await newton.maintenance(f"job {LIFECYCLE}").run_lifecycle()
    outcome = to_lifecycle_outcome(report.steps)
    if not report.expired_contexts:
        return outcome
    reason = f"{outcome.reason}; {format_count(report.expired_contexts, 'context')} expired"
    return JobOutcome(reason=reason, result={**(outcome.result or {}), EXPIRED_CONTEXTS: report.expired_contexts})


def to_lifecycle_outcome(transitions: Sequence[PlannedTransition]) -> JobOutcome:
    """Return the job outcome with the number of state transitions by event, such as `archived`."""
    events = Counter(transition.event for transition in transitions)
    if not events:
        return JobOutcome(reason="no memory is due for a change of its state")
    counts = ", ".join(f"{number:,} {event}" for event, number in events.most_common())
    return JobOutcome(reason=f"{format_count(len(transitions), 'transition')}: {counts}", result=dict(events))


async def learn_from_sessions(newton: AgentServices) -> JobOutcome:
    """Close idle sessions, extract facts from all conversations that are not processed yet, and let the model say what
    they change in known facts.
    """
    try:
        return to_learning_outcome(await newton.maintenance("job extract").learn(only_due=True))
    except TokenQuotaError:
        return JobOutcome(reason="the daily token limit of the model is reached")


def to_learning_outcome(report: LearningReport) -> JobOutcome:
    """Return the job outcome with the counts of episodes, conversations, new facts, and changes by a model."""
    extracted, read = report.extraction, report.reconciliation
    if not report.episodes and extracted == ExtractionResult() and read == ReconciliationResult():
        return JobOutcome(reason="no session is idle, and every conversation is processed")
    counts = {"conversations": extracted.conversations, "facts": extracted.facts}
    counts |= {"calls": read.calls, "kept": read.kept, "dropped": read.dropped} if read.calls else {}
    counts |= {"failed": read.failed} if read.failed else {}
    reason = f"{format_count(extracted.conversations, 'conversation')} to process"
    if not report.episodes and not extracted.conversations:
        reason = f"{format_count(extracted.facts, 'fact')} stated in sessions that go on"
    return JobOutcome(reason=reason, result={"episodes": report.episodes, **counts})


async def summarize_lines(newton: AgentServices) -> JobOutcome:
    """Let the chat model summarize long stored messages that have no summary of it yet."""
    maintenance = newton.maintenance("job summarize-lines")
    if maintenance.llm is None:
        return JobOutcome(reason=NO_MODEL)

    async def find_long_messages(tx: Tx) -> bool:
        return bool(await message_queues.find(tx, agent_id=newton.scope.agent_id, limit=1))

    if not await newton.scope.db.run_with_retry(newton.scope.agent_id, find_long_messages):
        return JobOutcome(reason="no message is longer than its summary")
    count = await maintenance.summarize_lines()
    return JobOutcome(reason="some messages were longer than their summaries", result={"lines": count})
