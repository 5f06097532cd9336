"""The queue of one agent: what waits, how runs end, and what became of them. Times are the database's own."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

from newton.agent.telling import tell
from newton.db.pool import Database, Tx
from newton.db.queries import Record, load
from newton.errors import ConflictError
from newton.ids import new_id

SQL = load("newton.runtime.jobs", "queue.sql")

MOST_ATTEMPTS = 8
GOES_ON = "It goes on there; nothing is lost."

State = Literal["queued", "running", "done", "dead"]
Did: TypeAlias = Mapping[str, int | float | str | Sequence[str] | Mapping[str, int]]


class Claimed(NamedTuple):
    """A run that one holder has to itself until the lease is over. Who ends it shows holder and epoch."""

    agent_id: UUID
    agent: str
    job_id: UUID
    name: str
    slot: datetime
    attempts: int
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run came to and why. `did` holds numbers and ids and no words of a memory; it is None when nothing
    was done. What `write` does is done in the transaction that ends the run, or not at all; it returns more of what was
    done."""

    because: str
    did: Did | None = None
    write: Callable[[Tx], Awaitable[Did]] | None = None


class Failure(NamedTuple):
    """What went wrong, how long the next attempt waits, and whether this one counts."""

    error: str
    after: timedelta
    counts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run as it stands in the queue."""

    job_id: UUID
    name: str
    slot: datetime
    state: State
    attempts: int
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: Did | None
    because: str | None
    error: str | None

    @property
    def took(self) -> timedelta | None:
        """How long the last attempt took; None when it has not ended."""
        return self.finished_at - self.started_at if self.finished_at and self.started_at else None


class LostError(ConflictError):
    """Another holder has the run by now: what this one did is undone."""


async def add(tx: Tx, name: str, *, agent_id: UUID, moment: datetime | None = None) -> UUID:
    """Asks for a run now, unless the job waits or runs already; then that one is hurried. Returns which one it is."""
    row = await SQL["enqueue"].one(tx, agent_id=agent_id, job_id=new_id(), name=name, moment=moment)
    row = row or await SQL["run_sooner"].one(tx, agent_id=agent_id, name=name, moment=moment)
    if row is None:
        raise ConflictError(f"{name} has just ended.", hint="Ask for it again.")
    return row["job_id"]


async def wake(tx: Tx, name: str, *, agent_id: UUID) -> None:
    """Has the job run soon; one that waits or runs already sees to it."""
    await SQL["enqueue"].one(tx, agent_id=agent_id, job_id=new_id(), name=name, moment=None)


async def end(db: Database, claimed: Claimed, outcome: Outcome, *, moment: datetime | None = None) -> Outcome:
    """Ends a run, with what it writes, in one transaction. Raises LostError, and then has written nothing."""
    async with db.work(claimed.agent_id) as tx:
        if outcome.write:
            outcome = replace(outcome, did={**(outcome.did or {}), **await outcome.write(tx)}, write=None)
        row = await SQL["finish_run"].one(
            tx,
            **_fence(claimed),
            result=None if outcome.did is None else json.dumps(outcome.did),
            reason=outcome.because,
            moment=moment,
        )
        if row is None:
            raise LostError(f"{claimed.name} was taken over by another.", hint=GOES_ON)
        await SQL["delete_idle_runs"].run(tx, agent_id=claimed.agent_id, name=claimed.name, slot=claimed.slot)
        if outcome.did is not None:
            about = {"job": claimed.name, "did": outcome.did}
            tell("job.ended", about, agent_id=claimed.agent_id, now=row["finished_at"])
    return outcome


async def fail(db: Database, claimed: Claimed, failure: Failure, *, moment: datetime | None = None) -> State | None:
    """Has a run wait for its next attempt, or be dead when that was the last. None when another has it."""
    async with db.work(claimed.agent_id) as tx:
        row = await SQL["fail_run"].one(
            tx,
            **_fence(claimed),
            error=failure.error,
            seconds=failure.after.total_seconds(),
            max_attempts=MOST_ATTEMPTS,
            moment=moment,
            counted_attempts=int(failure.counts),
        )
    return row["state"] if row else None


async def latest(tx: Tx, *, agent_id: UUID) -> dict[str, Entry]:
    """The last run of each job by its name."""
    return {row["name"]: _entry(row) for row in await SQL["list_latest"].all(tx, agent_id=agent_id)}


async def dead(tx: Tx, *, agent_id: UUID) -> list[Entry]:
    """Runs that were given up, the last first."""
    return [_entry(row) for row in await SQL["list_dead"].all(tx, agent_id=agent_id)]


async def revive(tx: Tx, name: str | None, *, agent_id: UUID, moment: datetime | None = None) -> list[str]:
    """Has what was given up tried again, of all jobs or of one; returns which jobs those are."""
    rows = await SQL["retry_dead"].all(tx, agent_id=agent_id, name=name, moment=moment)
    return sorted(row["name"] for row in rows)


async def trim(tx: Tx, *, agent_id: UUID, before: datetime) -> int:
    """Drops runs that ended before a moment, never the last of a job; returns how many those were."""
    row = await SQL["delete_old_runs"].one(tx, agent_id=agent_id, before=before)
    return row["runs"] if row else 0


def _fence(claimed: Claimed) -> dict[str, object]:
    return {
        "agent_id": claimed.agent_id,
        "job_id": claimed.job_id,
        "holder": claimed.holder,
        "epoch": claimed.epoch,
    }


def _entry(row: Record) -> Entry:
    fields = dict(row)
    result = fields.pop("result")
    return Entry(**fields, result=result and json.loads(result))
