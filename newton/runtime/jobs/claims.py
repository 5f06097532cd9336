"""The job queue of all agents: add due runs, claim runs under a lease, and renew and release the leases."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Database
from newton.db.queries import load
from newton.runtime.jobs.queue import MAX_ATTEMPTS, ClaimedRun
from newton.runtime.jobs.triggers import JobSchedule

SQL = load("newton.runtime.jobs", "claims.sql")

SPARE_RUNS = 32  # due runs that are read beyond the limit, because other workers may claim the first ones
LEASE_SECONDS = 10.0  # after this time without renewal, another worker takes over a run


class AgentQueue(NamedTuple):
    """An agent with counts of its job runs: `live` are pending or running, `dead` have failed for good.

    For the separate memory of a user or a project, `parent` names the parent agent, and `user` or `project` whose it
    is. `model` is the default chat model. `last_at` is the end of the last run.
    """

    name: str
    created_at: datetime
    parent: str | None
    user: str | None
    project: str | None
    model: str | None
    live: int
    dead: int
    last_at: datetime | None


async def enqueue_due(db: Database, schedules: Mapping[str, JobSchedule], *, moment: datetime | None = None) -> None:
    """Queue the due jobs of all agents. Each time slot is queued once; several missed slots become one run."""
    async with db.worker_transaction() as tx:
        row = await SQL["get_now"].fetch_one(tx)
        assert row is not None
        now: datetime = moment or row["now"]
        slots = {name: slot for name, schedule in schedules.items() if (slot := schedule.last_slot(now)) is not None}
        delays = [schedules[name].jitter_seconds for name in slots]
        await SQL["enqueue_due"].execute(tx, names=list(slots), slots=list(slots.values()), now=now, delays=delays)


async def mark_dead(db: Database, *, moment: datetime | None = None) -> None:
    """Mark a run as dead if its lease has expired in the last of `MAX_ATTEMPTS` attempts."""
    limits = {"max_attempts": MAX_ATTEMPTS, "moment": moment}
    async with db.worker_transaction() as tx:
        for row in await SQL["list_exhausted"].fetch_all(tx, **limits):
            await SQL["fail_exhausted"].execute(tx, agent_id=row["agent_id"], job_id=row["job_id"], **limits)


async def claim_runs(
    db: Database, holder: str, names: Sequence[str], *, limit: int, lease: timedelta, moment: datetime | None = None
) -> list[ClaimedRun]:
    """Claim up to `limit` due runs of the named jobs for the worker `holder`: one of each agent, then another of each.

    Those due longest come first. Each claim is one statement for one agent, and has a lease that expires after the time
    `lease`. Runs that other workers claim meanwhile are skipped.
    """
    claimed: list[ClaimedRun] = []
    if limit <= 0:
        return claimed
    claim = {"holder": holder, "seconds": lease.total_seconds(), "moment": moment}
    async with db.worker_transaction() as tx:
        for due in await SQL["list_due"].fetch_all(tx, names=list(names), max_rows=limit + SPARE_RUNS, moment=moment):
            row = await SQL["claim_due"].fetch_one(tx, agent_id=due["agent_id"], job_id=due["job_id"], **claim)
            claimed += [ClaimedRun(**row)] if row else []
            if len(claimed) == limit:
                break
    return claimed


async def claim_run(
    db: Database, holder: str, *, agent_id: UUID, job_id: UUID, lease: timedelta, moment: datetime | None = None
) -> ClaimedRun | None:
    """Claim one run for the worker `holder`, even before it is due; return None if another worker has claimed it."""
    claim = {"holder": holder, "seconds": lease.total_seconds(), "moment": moment}
    async with db.worker_transaction() as tx:
        row = await SQL["claim_one"].fetch_one(tx, agent_id=agent_id, job_id=job_id, **claim)
    return ClaimedRun(**row) if row else None


async def renew_leases(
    db: Database, holder: str, runs: Iterable[ClaimedRun], *, lease: timedelta, moment: datetime | None = None
) -> dict[UUID, int]:
    """Renew the leases of those runs that the worker `holder` still has.

    Return the epoch (fencing token) of each renewed run by job id.
    """
    job_ids: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for run in runs:
        job_ids[run.agent_id].append(run.job_id)
    epochs: dict[UUID, int] = {}
    renewal = {"holder": holder, "seconds": lease.total_seconds(), "moment": moment}
    async with db.worker_transaction() as tx:
        for agent_id in sorted(job_ids):  # the same order in all workers, so that they do not wait in a circle
            for row in await SQL["renew_leases"].fetch_all(tx, agent_id=agent_id, job_ids=job_ids[agent_id], **renewal):
                epochs[row["job_id"]] = row["epoch"]
    return epochs


async def release_runs(db: Database, holder: str, *, moment: datetime | None = None) -> None:
    """Return all runs of the worker `holder` to the queue, due now, without counting the attempt."""
    async with db.worker_transaction() as tx:
        for row in await SQL["list_holders_agents"].fetch_all(tx, holder=holder):
            await SQL["release_runs"].execute(tx, agent_id=row["agent_id"], holder=holder, moment=moment)


async def list_agent_queues(db: Database) -> list[AgentQueue]:
    """Return each agent with the counts of its job runs, sorted by name."""
    async with db.worker_transaction() as tx:
        rows = [dict(row) for row in await SQL["list_agents"].fetch_all(tx)]
    names = {row.pop("agent_id"): row["name"] for row in rows}  # a parent may be on another node of the database
    return [AgentQueue(parent=names.get(row.pop("parent_agent_id")), **row) for row in rows]
