"""What is due for any agent: noted when its slot comes, claimed by one holder, kept by renewing, given back."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Database
from newton.db.queries import load
from newton.runtime.jobs.queue import MOST_ATTEMPTS, Claimed
from newton.runtime.jobs.schedule import Schedule

SQL = load("newton.runtime.jobs", "claiming.sql")


class Resident(NamedTuple):
    """An agent of this database, with how many of its runs wait or are at work, and how many were given up."""

    name: str
    created_at: datetime
    live: int
    dead: int
    last_at: datetime | None


async def note_due(db: Database, schedules: Mapping[str, Schedule], *, moment: datetime | None = None) -> None:
    """Queues every job whose slot has come, once for each agent, whoever else notes it too; slots that were missed are
    one."""
    async with db.across() as tx:
        row = await SQL["get_now"].one(tx)
        assert row is not None
        now: datetime = moment or row["now"]
        slots = [schedule.slot(now) for schedule in schedules.values()]
        await SQL["enqueue_due"].run(tx, names=list(schedules), slots=slots, now=now)


async def bury(db: Database, *, moment: datetime | None = None) -> None:
    """Gives up the runs whose holders did not survive them often enough."""
    async with db.across() as tx:
        await SQL["fail_exhausted"].run(tx, max_attempts=MOST_ATTEMPTS, moment=moment)


async def claim(
    db: Database, holder: str, names: Sequence[str], *, most: int, lease: timedelta, moment: datetime | None = None
) -> list[Claimed]:
    """At most so many runs of these jobs that are due, the longest due first: until the lease is over they are this
    holder's alone."""
    async with db.across() as tx:
        seconds = lease.total_seconds()
        rows = await SQL["claim_due"].all(
            tx, holder=holder, seconds=seconds, names=list(names), max_rows=most, moment=moment
        )
    return [Claimed(**row) for row in rows]


async def claim_one(
    db: Database, holder: str, *, agent_id: UUID, job_id: UUID, lease: timedelta, moment: datetime | None = None
) -> Claimed | None:
    """That run, though it may not be due yet; None when another is at it."""
    async with db.across() as tx:
        seconds = lease.total_seconds()
        row = await SQL["claim_one"].one(
            tx, holder=holder, seconds=seconds, agent_id=agent_id, job_id=job_id, moment=moment
        )
    return Claimed(**row) if row else None


async def renew(
    db: Database, holder: str, held: Collection[UUID], *, lease: timedelta, moment: datetime | None = None
) -> dict[UUID, int]:
    """Keeps those of the runs that the holder still has; returns them with their epochs. The others are another's by
    now."""
    async with db.across() as tx:
        rows = await SQL["renew_leases"].all(
            tx, holder=holder, seconds=lease.total_seconds(), job_ids=list(held), moment=moment
        )
    return {row["job_id"]: row["epoch"] for row in rows}


async def give_back(db: Database, holder: str, *, moment: datetime | None = None) -> None:
    """Everything that the holder has is due again at once."""
    async with db.across() as tx:
        await SQL["release_runs"].run(tx, holder=holder, moment=moment)


async def everyone(db: Database) -> list[Resident]:
    """Every agent by its name."""
    async with db.across() as tx:
        return [Resident(**row) for row in await SQL["list_agents"].all(tx)]
