"""The job queue of one agent: add, finish, fail and retry runs. Times come from the database clock."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias
from uuid import UUID

from newton.agent.events import publish
from newton.db.pool import Database, Tx
from newton.db.queries import Record, load
from newton.errors import ConflictError
from newton.ids import new_id
from newton.runtime.jobs.triggers import JobSchedule
from newton.runtime.wiring import AgentServices

SQL = load("newton.runtime.jobs", "queue.sql")

MAX_ATTEMPTS = 8
MAX_STORED_RUNS = 500  # per job and agent
CONTINUES_ELSEWHERE = "The other worker repeats the run. You need to do nothing."

RunState = Literal["queued", "running", "done", "dead"]
RunResult: TypeAlias = Mapping[str, int | float | str | Sequence[str] | Mapping[str, int]]


class ClaimedRun(NamedTuple):
    """A run of a job that one worker (`holder`) has claimed. Only the holder with the current epoch can end it.

    `slot` is the scheduled time, and `epoch` the number of the claim (a fencing token).
    """

    agent_id: UUID
    agent: str
    job_id: UUID
    name: str
    slot: datetime
    attempts: int
    holder: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """The result of a run and the reason for it. `result` has numbers and ids but no text of memories, and is None if
    nothing was done.

    `write` is called in the transaction that ends the run, and returns entries to add to `result`.
    """

    reason: str
    result: RunResult | None = None
    write: Callable[[Tx], Awaitable[RunResult]] | None = None


class JobFailure(NamedTuple):
    """The error of a run and the delay before the next attempt. `is_attempt` is False if the attempt does not count."""

    error: str
    retry_after: timedelta
    is_attempt: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A run of a job as stored in the queue: its state, its result with the reason, or its error.

    `slot` is the scheduled time of the run, and `due_at` the time of its next attempt.
    """

    job_id: UUID
    name: str
    slot: datetime
    state: RunState
    attempts: int
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: RunResult | None
    reason: str | None
    error: str | None

    @property
    def duration(self) -> timedelta | None:
        """Return the duration of the last attempt; None if it has not started or not ended."""
        return self.finished_at - self.started_at if self.finished_at and self.started_at else None


class LeaseLostError(ConflictError):
    """Another worker has claimed the run, so the changes of this attempt are rolled back."""


async def enqueue(tx: Tx, name: str, *, agent_id: UUID, moment: datetime | None = None) -> UUID:
    """Queue a run of the named job, due now, and return its id. If one waits already, it becomes due now instead.

    If one runs, nothing is changed, and its id is returned. Raises ConflictError if it ends at the same moment.
    """
    row = await SQL["enqueue"].fetch_one(tx, agent_id=agent_id, job_id=new_id(), name=name, moment=moment)
    row = row or await SQL["run_sooner"].fetch_one(tx, agent_id=agent_id, name=name, moment=moment)
    if row is None:
        raise ConflictError(f"The run of the job {name} has just ended.", hint="Request another run of the job.")
    return row["job_id"]


async def enqueue_if_idle(tx: Tx, name: str, *, agent_id: UUID) -> None:
    """Queue the named job unless a run of it is pending or running."""
    await SQL["enqueue"].fetch_one(tx, agent_id=agent_id, job_id=new_id(), name=name, moment=None)


async def finish(
    db: Database, claimed: ClaimedRun, outcome: JobOutcome, *, moment: datetime | None = None
) -> JobOutcome:
    """Mark a run as done and call `outcome.write`, in one transaction; return the outcome with what that adds.

    Raises LeaseLostError if another worker has claimed the run.
    """
    async with db.transaction(claimed.agent_id) as tx:
        if outcome.write:
            outcome = replace(outcome, result={**(outcome.result or {}), **await outcome.write(tx)}, write=None)
        row = await SQL["finish_run"].fetch_one(
            tx,
            **_fencing_args(claimed),
            result=None if outcome.result is None else json.dumps(outcome.result),
            reason=outcome.reason,
            moment=moment,
        )
        if row is None:
            raise LeaseLostError(
                f"Another worker has taken over the run of the job {claimed.name}.", hint=CONTINUES_ELSEWHERE
            )
        await SQL["delete_idle_runs"].execute(tx, agent_id=claimed.agent_id, name=claimed.name, slot=claimed.slot)
        if outcome.result is not None:
            payload = {"job": claimed.name, "result": outcome.result}
            publish("job.completed", payload, agent_id=claimed.agent_id, now=row["finished_at"])
    return outcome


async def fail(
    db: Database, claimed: ClaimedRun, failure: JobFailure, *, moment: datetime | None = None
) -> RunState | None:
    """Schedule the next attempt of a failed run, or mark the run as dead after the last attempt.

    Return the new state, or None if another worker has claimed the run.
    """
    async with db.transaction(claimed.agent_id) as tx:
        now = await SQL["get_moment"].fetch_one(tx, moment=moment)
        assert now is not None
        row = await SQL["fail_run"].fetch_one(
            tx,
            **_fencing_args(claimed),
            error=failure.error,
            seconds=failure.retry_after.total_seconds(),
            max_attempts=MAX_ATTEMPTS,
            moment=now["moment"],
            counted_attempts=int(failure.is_attempt),
        )
    return row["state"] if row else None


async def latest_runs(tx: Tx, *, agent_id: UUID) -> dict[str, JobRun]:
    """Return the last run of each job by the name of the job."""
    return {row["name"]: _to_job_run(row) for row in await SQL["list_latest"].fetch_all(tx, agent_id=agent_id)}


async def list_runs(tx: Tx, name: str, *, agent_id: UUID, limit: int) -> list[JobRun]:
    """Return up to `limit` runs of the named job, latest first.

    Of the runs that had nothing to do, only the last one is stored.
    """
    rows = await SQL["list_runs"].fetch_all(tx, agent_id=agent_id, name=name, max_rows=limit)
    return [_to_job_run(row) for row in rows]


async def list_dead(tx: Tx, *, agent_id: UUID) -> list[JobRun]:
    """Return the runs that failed for good and whose job has not succeeded since, latest first."""
    return [_to_job_run(row) for row in await SQL["list_dead"].fetch_all(tx, agent_id=agent_id)]


async def retry_dead(tx: Tx, name: str | None, *, agent_id: UUID, moment: datetime | None = None) -> list[str]:
    """Queue the dead runs (failed at the last attempt) of the named job again; None as `name` is every job.

    Return the names of the jobs.
    """
    rows = await SQL["retry_dead"].fetch_all(tx, agent_id=agent_id, name=name, moment=moment)
    return sorted(row["name"] for row in rows)


async def delete_old_runs(tx: Tx, *, agent_id: UUID, before: datetime, max_runs: int = MAX_STORED_RUNS) -> int:
    """Delete the runs that ended before a time, and those beyond the latest `max_runs` of each job.

    Return their number. The last run of each job is kept.
    """
    row = await SQL["delete_old_runs"].fetch_one(tx, agent_id=agent_id, before=before, max_runs=max_runs)
    return row["runs"] if row else 0


def _fencing_args(claimed: ClaimedRun) -> dict[str, object]:
    return {"agent_id": claimed.agent_id, "job_id": claimed.job_id, "holder": claimed.holder, "epoch": claimed.epoch}


def _to_job_run(row: Record) -> JobRun:
    fields = dict(row)
    result = fields.pop("result")
    return JobRun(**fields, result=result and json.loads(result))


class Job(NamedTuple):
    """A scheduled job. `run` must be idempotent, because a run may be cancelled at any point and repeated."""

    name: str
    description: str
    schedule: JobSchedule
    run: Callable[[AgentServices], Awaitable[JobOutcome]]
    timeout_seconds: float = 600


def format_count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with thousands separators and the noun in singular or plural.

    >>> format_count(1, "fact"), format_count(2_000, "memory", "memories")
    ('1 fact', '2,000 memories')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
