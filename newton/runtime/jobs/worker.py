"""The job worker: queues due jobs, claims runs, renews their leases, and records how they end."""

import asyncio
import os
import random
import socket
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import structlog

from newton.clock import monotonic_ms
from newton.concurrency import task_group, with_timeout
from newton.db.pool import Database
from newton.errors import ConflictError, DatabaseError, NewtonError
from newton.ids import new_id
from newton.runtime.jobs import claims, queue
from newton.runtime.jobs.queue import CONTINUES_ELSEWHERE, ClaimedRun, JobFailure, JobOutcome, LeaseLostError
from newton.runtime.jobs.triggers import JobSchedule, backoff_delay
from newton.telemetry import span

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")

MAX_OUTAGE_SECONDS = 60.0  # maximum pause of a run that the database failed

RunFunction = Callable[[ClaimedRun], Awaitable[JobOutcome]]
RunTask = asyncio.Task[BaseException | JobOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTimings:
    """Intervals of a job worker, in seconds, and its maximum number of concurrent runs."""

    lease: float = claims.LEASE_SECONDS
    renew: float = 3
    poll: float = 1  # of the queue
    tick: float = 15  # between checks for due slots
    reconnect: float = 2  # maximum pause before a reconnect
    drain: float = 8  # maximum wait for running jobs at shutdown
    concurrency: int = 2


@dataclass(slots=True)
class JobWorker:
    """A worker that claims runs of jobs under the name `holder`, and calls `run` for each.

    Each run has a task of its own, so a failure affects no other run.
    """

    db: Database
    run: RunFunction
    timings: WorkerTimings = field(default_factory=WorkerTimings)
    holder: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{new_id().hex[-8:]}")
    running: dict[UUID, tuple[ClaimedRun, RunTask]] = field(default_factory=dict[UUID, tuple[ClaimedRun, RunTask]])
    slot_freed: asyncio.Event = field(default_factory=asyncio.Event)
    outages: Counter[UUID] = field(default_factory=Counter[UUID])  # consecutive failures of the database, by run

    async def work(self, schedules: Mapping[str, JobSchedule], stop: asyncio.Event) -> None:
        """Claim and execute runs until `stop` is set, also after a database outage.

        Then wait up to the `drain` time for running jobs, and return the rest to the queue.
        """
        async with task_group() as tasks:
            renew_task = tasks.create_task(self._renew_forever())
            claim_task = tasks.create_task(self._claim_forever(schedules, tasks))
            await stop.wait()
            await self._cancel(claim_task)
            if current := [task for _, task in self.running.values()]:
                _, late = await asyncio.wait(current, timeout=self.timings.drain)
                await self._cancel(*late)
            await self._cancel(renew_task)
        with suppress(DatabaseError, TimeoutError):  # otherwise the leases expire
            await with_timeout(claims.release_runs(self.db, self.holder), seconds=1)

    async def run_once(self, *, agent_id: UUID, job_id: UUID) -> JobOutcome:
        """Run one job now and return its outcome. If the call is cancelled, return the run to the queue.

        Raises the exception of a failed job, and ConflictError if another worker has claimed the run.
        """
        lease = timedelta(seconds=self.timings.lease)
        claimed = await claims.claim_run(self.db, self.holder, agent_id=agent_id, job_id=job_id, lease=lease)
        if claimed is None:
            raise ConflictError(
                "Another worker already runs the job.", hint="`newton jobs` shows the status of the job."
            )
        async with task_group() as tasks:
            renew_task = tasks.create_task(self._renew_forever())
            task = self._start(claimed, tasks)
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                await self._cancel(task)
                await claims.release_runs(self.db, self.holder)
                raise
            await self._cancel(renew_task)
        if task.cancelled():
            raise LeaseLostError("Another worker has taken over the run of the job.", hint=CONTINUES_ELSEWHERE)
        outcome = task.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def _claim_forever(self, schedules: Mapping[str, JobSchedule], tasks: asyncio.TaskGroup) -> None:
        """Claim runs and start them in a loop. Between two polls, wait until a run ends, at most the `poll` time."""
        checked_at = float("-inf")
        lease = timedelta(seconds=self.timings.lease)
        while True:
            self.slot_freed.clear()
            free = self.timings.concurrency - len(self.running)
            async with self._pause_on_database_error():
                if monotonic_ms() - checked_at >= self.timings.tick * 1_000:
                    await claims.enqueue_due(self.db, schedules)
                    await claims.mark_dead(self.db)
                    checked_at = monotonic_ms()
                for claimed in await claims.claim_runs(self.db, self.holder, list(schedules), limit=free, lease=lease):
                    self._start(claimed, tasks)
            with suppress(TimeoutError):
                await with_timeout(self.slot_freed.wait(), seconds=self.timings.poll)

    def _start(self, claimed: ClaimedRun, tasks: asyncio.TaskGroup) -> RunTask:
        task = tasks.create_task(self._execute(claimed))
        self.running[claimed.job_id] = claimed, task
        task.add_done_callback(lambda task: self._on_task_done(claimed.job_id, task))
        return task

    def _on_task_done(self, job_id: UUID, task: RunTask) -> None:
        if job_id in self.running and self.running[job_id][1] is task:  # false if the run was claimed again meanwhile
            del self.running[job_id]
        self.slot_freed.set()

    async def _execute(self, claimed: ClaimedRun) -> BaseException | JobOutcome:
        """Run a job, store its end in the queue, and return its outcome or exception."""
        outcome = await _capture(self._run_and_finish(claimed))
        if not isinstance(outcome, DatabaseError):
            self.outages.pop(claimed.job_id, None)
        if isinstance(outcome, JobOutcome | LeaseLostError):
            return outcome
        failure = self._to_job_failure(outcome, claimed)
        log.warning("job_failed", job=claimed.name, attempt=claimed.attempts, error=failure.error)
        await _capture(queue.fail(self.db, claimed, failure))  # if it fails too, the lease expires
        return outcome

    def _to_job_failure(self, error: BaseException, claimed: ClaimedRun) -> JobFailure:
        """Return the failure to record for an exception.

        A failure of the database does not count as an attempt. Its first retry is soon, and the pause doubles while
        the database fails, for example because its disk is full.
        """
        if not isinstance(error, DatabaseError):
            return JobFailure(_error_text(error), backoff_delay(claimed.attempts, random.random()))
        self.outages[claimed.job_id] += 1
        pause = self.timings.reconnect * 2 ** (self.outages[claimed.job_id] - 1) * random.uniform(0.5, 1)
        delay = timedelta(seconds=min(pause, MAX_OUTAGE_SECONDS))
        return JobFailure(error.what, delay, is_attempt=False)

    async def _run_and_finish(self, claimed: ClaimedRun) -> JobOutcome:
        with span(f"job {claimed.name}", agent_id=str(claimed.agent_id), attempt=claimed.attempts):
            return await queue.finish(self.db, claimed, await self.run(claimed))

    async def _renew_forever(self) -> None:
        """Renew the leases of running jobs in a loop, and cancel runs that another worker has taken over."""
        while True:
            await asyncio.sleep(self.timings.renew)
            current, lease = dict(self.running), timedelta(seconds=self.timings.lease)
            if not current:
                continue
            async with self._pause_on_database_error():
                held = [claimed for claimed, _ in current.values()]
                epochs = await claims.renew_leases(self.db, self.holder, held, lease=lease)
                for job_id, (claimed, task) in current.items():
                    if epochs.get(job_id) != claimed.epoch:
                        task.cancel()

    @asynccontextmanager
    async def _pause_on_database_error(self) -> AsyncGenerator[None]:
        """Catch a database error in the block, log it, and pause before the next attempt."""
        try:
            yield
        except DatabaseError as error:
            log.warning("database_lost", error=error.what)
            await asyncio.sleep(self.timings.reconnect * (0.25 + 0.75 * random.random()))

    async def _cancel(self, *tasks: "asyncio.Task[Any]") -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _capture(work: Awaitable[T]) -> T | BaseException:
    """Return the result of an awaitable, or the exception that it raised."""
    (result,) = await asyncio.gather(work, return_exceptions=True)
    return result


def _error_text(error: BaseException) -> str:
    """Return the text to store for an exception.

    Only the messages of NewtonError and of timeouts are quoted, because others may contain a memory.
    """
    if isinstance(error, NewtonError):
        return error.what
    if isinstance(error, TimeoutError):
        return "the run timed out"
    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{location}"
