"""All jobs by name, and their execution for an agent of the daemon."""

from newton.concurrency import with_timeout
from newton.errors import NotFoundError
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.jobs import decisions, memories, retention
from newton.runtime.jobs.job import Job
from newton.runtime.jobs.queue import ClaimedRun, JobOutcome
from newton.runtime.jobs.worker import RunFunction

JOBS: dict[str, Job] = {job.name: job for job in (*memories.JOBS, *decisions.JOBS, *retention.JOBS)}
SCHEDULES = {job.name: job.schedule for job in JOBS.values()}


def get_job(name: str) -> Job:
    """Return the job of that name. Raises NotFoundError."""
    if name not in JOBS:
        raise NotFoundError(f"There is no job {name!r}.", hint=f"There are: {', '.join(JOBS)}.")
    return JOBS[name]


def build_runner(agents: AgentRegistry) -> RunFunction:
    """Return a function that runs a job for its agent within the job's timeout."""

    async def run(claimed: ClaimedRun) -> JobOutcome:
        job, newton = get_job(claimed.name), await agents.get(claimed.agent)
        outcome = await with_timeout(job.run(newton), seconds=job.timeout_seconds)
        if job.name == memories.REEMBED and outcome.result:
            await agents.reload(newton)  # the active embedding model may have changed
        return outcome

    return run
