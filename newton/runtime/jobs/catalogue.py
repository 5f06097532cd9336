"""Every job by its name, and how one is done for an agent of the daemon."""

from newton.concurrency import within
from newton.errors import NotFoundError
from newton.runtime.jobs import decisions, memories, storage
from newton.runtime.jobs.job import Job
from newton.runtime.jobs.queue import Claimed, Outcome
from newton.runtime.jobs.work import Run
from newton.runtime.minds import Minds

JOBS: dict[str, Job] = {job.name: job for job in (*memories.JOBS, *decisions.JOBS, *storage.JOBS)}
SCHEDULES = {job.name: job.schedule for job in JOBS.values()}


def job(name: str) -> Job:
    """Raises NotFoundError."""
    if name not in JOBS:
        raise NotFoundError(f"There is no job {name!r}.", hint=f"There are: {', '.join(JOBS)}.")
    return JOBS[name]


def running(minds: Minds) -> Run:
    """Does a run for the agent that it is for, within the time that its job has."""

    async def run(claimed: Claimed) -> Outcome:
        known = job(claimed.name)
        return await within(known.act(await minds.of(claimed.agent)), seconds=known.seconds)

    return run
