"""The table of scheduled jobs, the function with which the daemon runs one for an agent, and their status."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from newton.concurrency import with_timeout
from newton.errors import NotFoundError
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.jobs import maintenance, queue
from newton.runtime.jobs.job_settings import SCHEDULES, build_schedules
from newton.runtime.jobs.queue import MAX_ATTEMPTS, ClaimedRun, Job, JobOutcome, JobRun
from newton.runtime.jobs.triggers import OffSchedule
from newton.runtime.jobs.worker import RunFunction
from newton.runtime.wiring import AgentServices

_TABLE = (
    Job(
        "embed",
        "Embeds pending memories, and compares new facts with stored ones.",
        SCHEDULES["embed"],
        maintenance.embed_memories,
    ),
    Job("summarize", "Updates the summaries of sessions.", SCHEDULES["summarize"], maintenance.summarize_sessions),
    Job(
        maintenance.EXTRACT,
        "Stores idle sessions as episodes, extracts facts from conversations, and lets the model reconcile them.",
        SCHEDULES[maintenance.EXTRACT],
        maintenance.learn_from_sessions,
    ),
    Job(
        "summarize-lines",
        "Summarizes long messages with the model.",
        SCHEDULES["summarize-lines"],
        maintenance.summarize_lines,
    ),
    Job(
        maintenance.REEMBED,
        "Embeds all memories again after a change of the embedding model.",
        SCHEDULES[maintenance.REEMBED],
        maintenance.reembed_memories,
    ),
    Job(
        "generalize",
        "Merges the facts of an attribute that has too many.",
        SCHEDULES["generalize"],
        maintenance.generalize_facts,
    ),
    *(maintenance.lifecycle_job(kind, SCHEDULES[f"lifecycle-{kind}"]) for kind in maintenance.LIFECYCLE_DESCRIPTIONS),
    Job(
        maintenance.LIFECYCLE,
        "Does the daily maintenance at once: embeds, compares and merges facts, changes states, deletes old contexts.",
        SCHEDULES[maintenance.LIFECYCLE],
        maintenance.run_lifecycle,
        maintenance.LIFECYCLE_TIMEOUT_SECONDS,
    ),
    Job("remind", "Lists decisions whose review is due.", SCHEDULES["remind"], maintenance.remind_reviews),
    Job(
        "calibrate",
        "Stores how well the confidences of decisions match their outcomes.",
        SCHEDULES["calibrate"],
        maintenance.take_calibration_snapshot,
    ),
    Job(
        "verify",
        "Verifies that no record of the decision log was changed.",
        SCHEDULES["verify"],
        maintenance.verify_ledger,
    ),
    Job(
        "retain", "Deletes old contexts, working memory and job runs.", SCHEDULES["retain"], maintenance.apply_retention
    ),
    Job(
        "check-vacuum", "Lists database tables that need a vacuum.", SCHEDULES["check-vacuum"], maintenance.check_vacuum
    ),
)
JOBS: dict[str, Job] = {job.name: job for job in _TABLE}


def get_job(name: str) -> Job:
    """Return the scheduled job with this name. Raises NotFoundError for an unknown name."""
    if name not in JOBS:
        raise NotFoundError(f"There is no job {name!r}.", hint=f"The jobs are: {', '.join(JOBS)}.")
    return JOBS[name]


def build_runner(agents: AgentRegistry) -> RunFunction:
    """Return a function that runs a claimed job for its agent, within the timeout of the job."""

    async def run(claimed: ClaimedRun) -> JobOutcome:
        job, newton = get_job(claimed.name), await agents.get(claimed.agent)
        outcome = await with_timeout(job.run(newton), seconds=job.timeout_seconds)
        if job.name == maintenance.REEMBED and outcome.result:
            await agents.reload(newton)  # the active embedding model may have changed
        return outcome

    return run


NEXT_SLOT = "next slot of the schedule"
ON_REQUEST = "runs only on request"


class JobStatus(NamedTuple):
    """A job with its last run, its schedule in words, its next time, and why it runs then (`due_reason`).

    The next time is that of the next attempt of a queued run, or else of the next slot; None if the schedule has ended
    or is turned off. A jitter may delay the slot.
    """

    job: Job
    last_run: JobRun | None
    schedule: str
    next_at: datetime | None
    due_reason: str

    @property
    def last_run_fields(self) -> dict[str, Any]:
        """Return the fields of the last run for JSON; all are None if the job has never run."""
        last = self.last_run
        return {
            "state": last and last.state,
            "last_at": last and last.started_at,
            "seconds": last.duration.total_seconds() if last and last.duration else None,
            "did": last and last.result,
            "because": last and last.reason,
            "error": last and last.error,
        }


async def list_job_statuses(newton: AgentServices) -> list[JobStatus]:
    """Return the status of each job of the agent, in the order of `JOBS`."""
    async with newton.scope.transaction() as tx:
        runs = await queue.latest_runs(tx, agent_id=newton.scope.agent_id)
    now, statuses = newton.scope.now(), list[JobStatus]()
    for name, schedule in build_schedules(newton.settings.jobs).items():
        last = runs.get(name)
        due_at = last.due_at if last and last.state == "queued" else schedule.next_slot(now)
        reason = ON_REQUEST if isinstance(schedule, OffSchedule) and due_at is None else describe_due(last, due_at, now)
        statuses.append(JobStatus(JOBS[name], last, schedule.description, due_at, reason))
    return statuses


def describe_due(last: JobRun | None, due_at: datetime | None, now: datetime) -> str:
    """Return, as words, why a job runs at its next time `due_at`, or why it has none. `last` is its last run."""
    if last and last.state == "running":
        return f"runs now, attempt {last.attempts} of {MAX_ATTEMPTS}"
    if last and last.state == "queued":
        if last.attempts:
            return f"repeats after an error: attempt {last.attempts + 1} of {MAX_ATTEMPTS}"
        return "due, waits for a worker" if last.due_at <= now else "requested"
    if due_at is None:
        return "has no next time: its schedule has ended"
    if last and last.state == "dead":
        return "next slot of the schedule; the last run failed and is not repeated"
    return NEXT_SLOT


async def list_job_runs(newton: AgentServices, name: str, *, limit: int) -> list[JobRun]:
    """Return up to `limit` runs of the named job, latest first. Raises NotFoundError for an unknown job."""
    async with newton.scope.transaction() as tx:
        return await queue.list_runs(tx, get_job(name).name, agent_id=newton.scope.agent_id, limit=limit)


async def request_run(newton: AgentServices, name: str) -> UUID:
    """Queue a run of the named job now; return its id, or the id of a pending or running run.

    Raises NotFoundError for an unknown job.
    """
    async with newton.scope.transaction() as tx:
        return await queue.enqueue(tx, get_job(name).name, agent_id=newton.scope.agent_id)
