"""Jobs on memories: embeddings, summaries, lifecycle rules, and extraction of memories by the model."""

from collections import Counter
from collections.abc import Sequence

from newton.agent.maintenance.artifact_vectors import embed_artifacts
from newton.agent.maintenance.extracted_facts import ExtractionResult
from newton.agent.maintenance.service import LearningReport
from newton.agent.reconciliation.reconciler import ReconciliationResult
from newton.db.pool import Tx
from newton.dialogue import long_messages
from newton.errors import TokenQuotaError
from newton.heart.lifecycle.engine import LifecycleScope
from newton.memory import outbox
from newton.memory.outbox import DrainResult, OutboxBacklog
from newton.memory.reembedding import reembed
from newton.memory.transitions import PlannedTransition
from newton.runtime.jobs.job import Job, format_count
from newton.runtime.jobs.queue import JobOutcome, RunResult
from newton.runtime.jobs.triggers import JobSchedule
from newton.runtime.wiring import AgentServices

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
    """Embed all pending memories. If the embedding model is unavailable, they stay pending until the next run."""
    drained = await newton.maintenance("job embed").process_pending(limit=None, passages=True)
    artifacts = await embed_artifacts(newton.scope, limit=MAX_ARTIFACTS_PER_RUN)
    async with newton.scope.transaction() as tx:
        backlog = await outbox.read_backlog(tx, agent_id=newton.scope.agent_id)
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
    count = await newton.maintenance("job summarize").update_summaries()
    if not count:
        return JobOutcome(reason="every summary is up to date")
    reason = f"{format_count(count, 'session')} had enough new messages for a new summary"
    return JobOutcome(reason=reason, result={"sessions": count})


async def generalize_facts(newton: AgentServices) -> JobOutcome:
    count = await newton.maintenance("job generalize").generalize_facts()
    limit = newton.scope.thresholds.max_facts_per_attribute
    if not count:
        return JobOutcome(reason=f"no attribute has more than {limit} current facts")
    reason = f"{format_count(count, 'fact')} of attributes with more than {limit} current facts"
    return JobOutcome(reason=reason, result={"facts": count})


def lifecycle_job(kind: LifecycleScope, schedule: JobSchedule) -> Job:
    """Return the job that archives, restores or changes the state of memories of one kind by the lifecycle rules."""

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
    events = Counter(step.event for step in transitions)
    if not events:
        return JobOutcome(reason="no memory is due for a change of its state")
    counts = ", ".join(f"{number:,} {event}" for event, number in events.most_common())
    return JobOutcome(reason=f"{format_count(len(transitions), 'transition')}: {counts}", result=dict(events))


async def learn_from_sessions(newton: AgentServices) -> JobOutcome:
    """Close idle sessions, extract facts from all conversations that are not processed yet, and reconcile them."""
    try:
        return to_learning_outcome(await newton.maintenance("job extract").learn(only_due=True))
    except TokenQuotaError:
        return JobOutcome(reason="the daily token limit of the model is reached")


def to_learning_outcome(report: LearningReport) -> JobOutcome:
    """Return the job outcome with the counts of episodes, conversations, new facts, and what a model proposed."""
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
    maintenance = newton.maintenance("job summarize-lines")
    if maintenance.llm is None:
        return JobOutcome(reason=NO_MODEL)

    async def find_long_messages(tx: Tx) -> bool:
        return bool(await long_messages.find(tx, agent_id=newton.scope.agent_id, limit=1))

    if not await newton.scope.db.run_with_retry(newton.scope.agent_id, find_long_messages):
        return JobOutcome(reason="no message is longer than its summary")
    count = await maintenance.summarize_lines()
    return JobOutcome(reason="some messages were longer than their summaries", result={"lines": count})
