"""Jobs on memories: vectors, summaries, lifecycle states, and model calls off the hot path."""

from collections import Counter
from collections.abc import Sequence

from newton.agent.maintenance.extraction import ExtractionResult
from newton.db.pool import Tx
from newton.dialogue import extraction_queue, long_messages
from newton.errors import TokenQuotaError
from newton.heart.lifecycle.engine import LifecycleScope
from newton.memory import outbox
from newton.memory.outbox import DrainResult, OutboxBacklog
from newton.memory.reembedding import reembed as made_anew
from newton.memory.transitions import PlannedTransition
from newton.runtime.jobs.job import Job, JobFunction, format_count
from newton.runtime.jobs.queue import JobOutcome
from newton.runtime.jobs.schedule import daily, every_minutes
from newton.runtime.wiring import AgentServices

REEMBED = "reembed"
MAX_REEMBEDDED_PER_RUN = 5_000  # memories per run: some minutes with the bundled model
NO_MODEL = "no model is set to ask"
NO_TOKENS_LEFT = "the model's tokens of today are spent"

LIFECYCLE_DESCRIPTIONS: dict[LifecycleScope, str] = {
    "fact": "Applies lifecycle transitions to facts.",
    "episode": "Shortens and archives old episodes.",
    "procedure": "Applies lifecycle transitions to procedures by their results.",
    "censor": "Retires and restores censors by their accuracy.",
    "caps": "Archives memories above the limit of their kind, and restores them within it.",
}


async def embed_memories(newton: AgentServices) -> JobOutcome:
    """Embed the waiting memories. An unavailable model is not a failure: they wait for the next slot."""
    drained = await newton.maintenance("job embed").process_pending(limit=None)
    async with newton.scope.transaction() as tx:
        left = await outbox.read_backlog(tx, agent_id=newton.scope.agent_id)
    return to_embed_outcome(drained, left)


def to_embed_outcome(drained: DrainResult, backlog: OutboxBacklog) -> JobOutcome:
    """Return the outcome of a drain. Pure."""
    tried = drained.embedded + drained.failed
    did = {
        "embedded": drained.embedded,
        "refused": drained.failed,
        "waiting": backlog.waiting,
        "given_up": backlog.given_up,
    }
    if drained.stopped_by and backlog.waiting:
        waiting = format_count(backlog.waiting, "memory waits", "memories wait")
        return JobOutcome(reason=f"{waiting} for a vector: {drained.stopped_by}", result=did if tried else None)
    if tried:
        return JobOutcome(reason=f"{format_count(tried, 'memory', 'memories')} waited for a vector", result=did)
    return JobOutcome(reason="nothing waited for a vector")


async def reembed_memories(newton: AgentServices) -> JobOutcome:
    """Reembed a limited number of memories with the model of the settings."""
    if newton.configured_embedder is None or newton.scope.embedder is newton.configured_embedder:
        return JobOutcome(reason="every vector is of the model that is set")
    done = await made_anew(
        newton.scope.db,
        newton.configured_embedder,
        agent_id=newton.scope.agent_id,
        now=newton.scope.now(),
        limit=MAX_REEMBEDDED_PER_RUN,
    )
    why = "another model is set" if done.stopped_by is None else f"another model is set, and {done.stopped_by}"
    return JobOutcome(reason=why, result={"memories": done.embedded, "taken_over": int(done.is_active)})


async def summarize_sessions(newton: AgentServices) -> JobOutcome:
    late = await newton.maintenance("job summarise").update_summaries()
    if not late:
        return JobOutcome(reason="every summary is up to date")
    return JobOutcome(
        reason=f"{format_count(late, 'session')} had said enough for a new summary", result={"sessions": late}
    )


async def generalize_facts(newton: AgentServices) -> JobOutcome:
    told = await newton.maintenance("job generalise").generalize_facts()
    most = newton.scope.thresholds.max_facts_per_attribute
    if not told:
        return JobOutcome(reason=f"no attribute has more than {most} current facts")
    because = f"{format_count(told, 'fact')} were of attributes with more than {most}"
    return JobOutcome(reason=because, result={"facts": told})


def lifecycle_job(kind: LifecycleScope) -> Job:
    """Return the job that applies the lifecycle rules to memories of one kind."""

    async def act(newton: AgentServices) -> JobOutcome:
        return to_lifecycle_outcome(await newton.maintenance(f"job {name}").apply_transitions(kind))

    name = f"lifecycle-{kind}"
    return Job(name=name, description=LIFECYCLE_DESCRIPTIONS[kind], schedule=daily(3, 20), run=act)


def to_lifecycle_outcome(transitions: Sequence[PlannedTransition]) -> JobOutcome:
    """Count the transitions by type. The reason of each is stored with its memory. Pure."""
    events = Counter(step.event for step in transitions)
    if not events:
        return JobOutcome(reason="every state is what the record asks for")
    said = ", ".join(f"{number:,} {event}" for event, number in events.most_common())
    return JobOutcome(
        reason=f"the record asked for {format_count(len(transitions), 'step')}: {said}", result=dict(events)
    )


async def extract_memories(newton: AgentServices) -> JobOutcome:
    upkeep = newton.maintenance("job extract")
    if upkeep.llm is None:
        return JobOutcome(reason=NO_MODEL)
    async with newton.scope.transaction() as tx:
        unread = await extraction_queue.find_unread(tx, agent_id=newton.scope.agent_id, limit=1)
    if not unread:
        return JobOutcome(reason="a model has read every conversation")
    try:
        return to_extraction_outcome(await upkeep.extract())
    except TokenQuotaError:
        return JobOutcome(reason=NO_TOKENS_LEFT)


def to_extraction_outcome(result: ExtractionResult) -> JobOutcome:
    did = {
        "conversations": result.conversations,
        "facts": result.facts,
        "procedures": result.procedures,
        "censors": result.censors,
    }
    return JobOutcome(reason=f"{format_count(result.conversations, 'conversation')} no model had read", result=did)


async def summarize_lines(newton: AgentServices) -> JobOutcome:
    upkeep = newton.maintenance("job summarize-lines")
    if upkeep.llm is None:
        return JobOutcome(reason=NO_MODEL)
    if not await _has_long_lines(newton):
        return JobOutcome(reason="no line is longer than its short form")
    told = await upkeep.summarize_lines()
    return JobOutcome(reason="lines were longer than their short forms hold", result={"lines": told})


async def _has_long_lines(newton: AgentServices) -> bool:
    async def read(tx: Tx) -> bool:
        return bool(await long_messages.find(tx, agent_id=newton.scope.agent_id, limit=1))

    return await newton.scope.db.run_with_retry(newton.scope.agent_id, read)


def _build_job(name: str, run: JobFunction, description: str) -> Job:
    return Job(name=name, description=description, schedule=SCHEDULES[name], run=run)


SCHEDULES = {
    "embed": every_minutes(2),
    "summarise": every_minutes(10),
    "extract": every_minutes(30),
    "summarize-lines": every_minutes(60),
    REEMBED: every_minutes(10),
    "generalise": daily(3, 10),
}

JOBS = (
    _build_job(
        "embed",
        embed_memories,
        "Gives vectors to memories that wait for them, and compares new facts with what is known.",
    ),
    _build_job("summarise", summarize_sessions, "Brings the summaries of sessions up to date."),
    _build_job("extract", extract_memories, "Has the model read conversations that none has read."),
    _build_job("summarize-lines", summarize_lines, "Shortens long lines with the model."),
    _build_job(REEMBED, reembed_memories, "Has the embedding model that is set take over from another one."),
    _build_job("generalise", generalize_facts, "Summarizes attributes with too many facts."),
    *(lifecycle_job(kind) for kind in LIFECYCLE_DESCRIPTIONS),
)
