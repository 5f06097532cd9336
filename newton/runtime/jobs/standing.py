"""Where the jobs of an agent stand, and asking for one now."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from newton.runtime.jobs import queue
from newton.runtime.jobs.catalogue import JOBS, job
from newton.runtime.jobs.job import Job
from newton.runtime.jobs.queue import Entry
from newton.runtime.wiring import Newton


class Standing(NamedTuple):
    """A job with its last run, and when it is due again; a run that failed comes sooner than its next slot."""

    job: Job
    last: Entry | None
    next_at: datetime

    @property
    def told(self) -> dict[str, Any]:
        """The last run as programs read it."""
        last = self.last
        return {
            "state": last and last.state,
            "last_at": last and last.started_at,
            "seconds": last.took.total_seconds() if last and last.took else None,
            "did": last and last.result,
            "because": last and last.because,
            "error": last and last.error,
        }


async def standings(newton: Newton) -> list[Standing]:
    """Every job of the agent, in the order of the catalogue."""
    async with newton.scope.transaction() as tx:
        known = await queue.latest(tx, agent_id=newton.scope.agent_id)
    now = newton.scope.now()
    return [Standing(one, known.get(name), _next(one, known.get(name), now)) for name, one in JOBS.items()]


def _next(one: Job, last: Entry | None, now: datetime) -> datetime:
    if last and last.state == "queued":
        return last.due_at
    return one.schedule.next(now)


async def ask(newton: Newton, name: str) -> UUID:
    """Has a job done now, unless it waits or runs already: then it is that run. Raises NotFoundError."""
    async with newton.scope.transaction() as tx:
        return await queue.add(tx, job(name).name, agent_id=newton.scope.agent_id)
