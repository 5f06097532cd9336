"""The table of scheduled jobs, and the function with which the daemon runs a job for an agent."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from newton.concurrency import with_timeout
from newton.errors import NotFoundError
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.jobs import maintenance
from newton.runtime.jobs.queue import ClaimedRun, Job, JobOutcome
from newton.runtime.jobs.triggers import JobSchedule, OffSchedule, daily, every_minutes, weekly
from newton.runtime.jobs.worker import RunFunction

_TABLE = (
    Job(
        "embed",
        "Embeds pending memories, and compares new facts with stored ones.",
        every_minutes(2),
        maintenance.embed_memories,
    ),
    Job("summarize", "Updates the summaries of sessions.", every_minutes(10), maintenance.summarize_sessions),
    Job(
        maintenance.EXTRACT,
        "Stores idle sessions as episodes, extracts facts from conversations, and lets the model reconcile them.",
        every_minutes(5),
        maintenance.learn_from_sessions,
    ),
    Job("summarize-lines", "Summarizes long messages with the model.", every_minutes(60), maintenance.summarize_lines),
    Job(
        maintenance.REEMBED,
        "Embeds all memories again after a change of the embedding model.",
        every_minutes(10),
        maintenance.reembed_memories,
    ),
    Job(
        "generalize", "Merges the facts of an attribute that has too many.", daily(3, 10), maintenance.generalize_facts
    ),
    *(maintenance.lifecycle_job(kind, daily(3, 20)) for kind in maintenance.LIFECYCLE_DESCRIPTIONS),
    Job(
        maintenance.LIFECYCLE,
        "Does the daily maintenance at once: embeds, compares and merges facts, changes states, deletes old contexts.",
        OffSchedule("on request"),
        maintenance.run_lifecycle,
        maintenance.LIFECYCLE_TIMEOUT_SECONDS,
    ),
    Job("remind", "Lists decisions whose review is due.", daily(7), maintenance.remind_reviews),
    Job(
        "calibrate",
        "Stores how well the confidences of decisions match their outcomes.",
        daily(4),
        maintenance.take_calibration_snapshot,
    ),
    Job("verify", "Verifies that no record of the decision log was changed.", daily(4, 30), maintenance.verify_ledger),
    Job("retain", "Deletes old contexts, working memory and job runs.", daily(3, 40), maintenance.apply_retention),
    Job("check-vacuum", "Lists database tables that need a vacuum.", weekly("Sunday", 5), maintenance.check_vacuum),
)
JOBS: dict[str, Job] = {job.name: job for job in _TABLE}
SCHEDULES: dict[str, JobSchedule] = {job.name: job.schedule for job in JOBS.values()}


def build_schedules(tables: Mapping[str, Any]) -> dict[str, JobSchedule]:
    """Return the schedule of each job, as the settings `[jobs.NAME]` change it.

    Raises ConfigError, with the remedy, for an unknown job or an invalid expression.
    """
    if not tables:
        return SCHEDULES
    changed: dict[str, JobSchedule]
    changed = import_module("newton.runtime.jobs.job_settings").parse_job_settings(tables, SCHEDULES)
    return {**SCHEDULES, **changed}


def get_job(name: str) -> Job:
    """Return the job with this name. Raises NotFoundError for an unknown name."""
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
