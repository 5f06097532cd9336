"""The worker: notes what is due, claims it, keeps it while it runs, and ends it or gives it back."""

import asyncio
import os
import random
import socket
import traceback
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
from newton.runtime.jobs.schedule import JobSchedule, backoff_delay
from newton.telemetry import span

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")

RunFunction = Callable[[ClaimedRun], Awaitable[JobOutcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTimings:
    """In seconds: how long a lease is and how often it is renewed, how often the queue is looked into and slots are
    noted, how long a lost database is waited for at most before the next try, and how long an end may take."""

    lease: float = 10
    renew: float = 3
    poll: float = 1
    tick: float = 15
    reconnect: float = 2
    drain: float = 8
    concurrency: int = 2


@dataclass(slots=True)
class JobWorker:
    """One holder of runs. What runs does so in tasks of its own, so that its failure is nobody else's."""

    db: Database
    run: RunFunction
    timings: WorkerTimings = field(default_factory=WorkerTimings)
    holder: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{new_id().hex[-8:]}")
    running: dict[UUID, tuple[ClaimedRun, "asyncio.Task[BaseException | JobOutcome]"]] = field(
        default_factory=dict[Any, Any]
    )
    slot_freed: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, schedules: Mapping[str, JobSchedule], stop: asyncio.Event) -> None:
        """Works until `stop`; then takes nothing new, waits for what runs, and gives back what does not end in time.

        A database that is away is waited for.
        """
        async with task_group() as tasks:
            renewing = tasks.create_task(self._renew_forever())
            claiming_ = tasks.create_task(self._claim_forever(schedules, tasks))
            await stop.wait()
            await self._cancel(claiming_)
            await self._drain()
            await self._cancel(renewing)
        with suppress(DatabaseError, TimeoutError):  # then the lease ends by itself
            await with_timeout(claims.release_runs(self.db, self.holder), seconds=1)

    async def run_once(self, *, agent_id: UUID, job_id: UUID) -> JobOutcome:
        """Does one run now and returns what came of it. Raises what it failed of, and ConflictError when another is at
        it. Whoever leaves in the middle gives it back."""
        lease = timedelta(seconds=self.timings.lease)
        claimed = await claims.claim_run(self.db, self.holder, agent_id=agent_id, job_id=job_id, lease=lease)
        if claimed is None:
            raise ConflictError("It is at work already.", hint="`newton jobs` shows how it goes.")
        async with task_group() as tasks:
            renewing = tasks.create_task(self._renew_forever())
            task = self._start(claimed, tasks)
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                await self._cancel(task)
                await claims.release_runs(self.db, self.holder)
                raise
            await self._cancel(renewing)
        ended = (
            LeaseLostError("It was taken over by another.", hint=CONTINUES_ELSEWHERE)
            if task.cancelled()
            else task.result()
        )
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def _claim_forever(self, schedules: Mapping[str, JobSchedule], tasks: asyncio.TaskGroup) -> None:
        """Slots are noted by a clock that only goes forward: one that is set back would fall silent until it has caught
        up."""
        ticked = float("-inf")
        lease = timedelta(seconds=self.timings.lease)
        while True:
            self.slot_freed.clear()
            free = self.timings.concurrency - len(self.running)
            async with self._pause_on_database_error():
                if monotonic_ms() - ticked >= self.timings.tick * 1_000:
                    await claims.enqueue_due(self.db, schedules)
                    await claims.mark_dead(self.db)
                    ticked = monotonic_ms()
                for claimed in await claims.claim_runs(self.db, self.holder, list(schedules), limit=free, lease=lease):
                    self._start(claimed, tasks)
            with suppress(TimeoutError):
                await with_timeout(self.slot_freed.wait(), seconds=self.timings.poll)

    def _start(self, claimed: ClaimedRun, tasks: asyncio.TaskGroup) -> "asyncio.Task[BaseException | JobOutcome]":
        task = tasks.create_task(self._execute(claimed))
        self.running[claimed.job_id] = claimed, task
        task.add_done_callback(lambda ended: self._on_task_done(claimed.job_id, ended))
        return task

    def _on_task_done(self, job_id: UUID, task: "asyncio.Task[BaseException | JobOutcome]") -> None:
        if job_id in self.running and self.running[job_id][1] is task:  # else it was claimed anew meanwhile
            del self.running[job_id]
        self.slot_freed.set()

    async def _execute(self, claimed: ClaimedRun) -> BaseException | JobOutcome:
        """Does the run and ends it, well or not; returns what came of it."""
        ended = await _capture(self._run_and_finish(claimed))
        if isinstance(ended, JobOutcome | LeaseLostError):
            return ended
        failure = self._to_job_failure(ended, claimed.attempts)
        log.warning("job_failed", job=claimed.name, attempt=claimed.attempts, error=failure.error)
        await _capture(queue.fail(self.db, claimed, failure))  # else the lease ends by itself
        return ended

    def _to_job_failure(self, error: BaseException, attempts: int) -> JobFailure:
        """That the database went away says nothing of the run."""
        if isinstance(error, DatabaseError):
            return JobFailure(error.what, timedelta(seconds=self.timings.reconnect * random.random()), is_attempt=False)
        return JobFailure(_error_text(error), backoff_delay(attempts, random.random()))

    async def _run_and_finish(self, claimed: ClaimedRun) -> JobOutcome:
        with span(f"job {claimed.name}", agent_id=str(claimed.agent_id), attempt=claimed.attempts):
            return await queue.finish(self.db, claimed, await self.run(claimed))

    async def _renew_forever(self) -> None:
        """What another has taken over is stopped here; it could not be ended anyway."""
        while True:
            await asyncio.sleep(self.timings.renew)
            held = dict(self.running)
            if not held:
                continue
            async with self._pause_on_database_error():
                ours = await claims.renew_leases(
                    self.db, self.holder, held, lease=timedelta(seconds=self.timings.lease)
                )
                for job_id, (claimed, task) in held.items():
                    if ours.get(job_id) != claimed.epoch:
                        task.cancel()

    @asynccontextmanager
    async def _pause_on_database_error(self) -> AsyncGenerator[None]:
        """When the database is away, waits a while before the next try."""
        try:
            yield
        except DatabaseError as error:
            log.warning("database_lost", error=error.what)
            await asyncio.sleep(self.timings.reconnect * (0.25 + 0.75 * random.random()))

    async def _drain(self) -> None:
        tasks = [task for _, task in self.running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.timings.drain)
            await self._cancel(*late)

    async def _cancel(self, *tasks: "asyncio.Task[Any]") -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _capture(work: Awaitable[T]) -> T | BaseException:
    """What it returns, or what it fails of: a run may fail of anything, and the worker goes on."""
    (ended,) = await asyncio.gather(work, return_exceptions=True)
    return ended


def _error_text(error: BaseException) -> str:
    """What is kept of a failure. Of one that nobody expected the words may be a memory's, so its place is told."""
    if isinstance(error, NewtonError):
        return error.what
    if isinstance(error, TimeoutError):
        return "it took too long"
    places = traceback.extract_tb(error.__traceback__)
    at = f" at {Path(places[-1].filename).name}:{places[-1].lineno}" if places else ""
    return f"{type(error).__name__}{at}"
