"""The table of scheduled jobs, and the function with which the daemon runs a job for an agent."""

from newton.concurrency import with_timeout
from newton.errors import NotFoundError
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.jobs import maintenance
from newton.runtime.jobs.job_settings import SCHEDULES
from newton.runtime.jobs.queue import ClaimedRun, Job, JobOutcome
from newton.runtime.jobs.worker import RunFunction

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
