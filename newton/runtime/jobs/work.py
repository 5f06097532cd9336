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

from newton.clock import stopwatch
from newton.concurrency import together, within
from newton.db.pool import Database
from newton.errors import ConflictError, DatabaseError, NewtonError
from newton.ids import new_id
from newton.runtime.jobs import claiming, queue
from newton.runtime.jobs.queue import GOES_ON, Claimed, Failure, LostError, Outcome
from newton.runtime.jobs.schedule import Schedule, backoff
from newton.spans import span

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")

Run = Callable[[Claimed], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """In seconds: how long a lease is and how often it is renewed, how often the queue is looked into and slots are
    noted, how long a lost database is waited for at most before the next try, and how long an end may take."""

    lease: float = 10
    renew: float = 3
    poll: float = 1
    tick: float = 15
    away: float = 2
    drain: float = 8
    at_once: int = 2


@dataclass(slots=True)
class Worker:
    """One holder of runs. What runs does so in tasks of its own, so that its failure is nobody else's."""

    db: Database
    run: Run
    pace: Pace = field(default_factory=Pace)
    holder: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{new_id().hex[-8:]}")
    held: dict[UUID, tuple[Claimed, "asyncio.Task[BaseException | Outcome]"]] = field(default_factory=dict[Any, Any])
    freed: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, schedules: Mapping[str, Schedule], stop: asyncio.Event) -> None:
        """Works until `stop`; then takes nothing new, waits for what runs, and gives back what does not end in time.

        A database that is away is waited for.
        """
        async with together() as tasks:
            renewing = tasks.create_task(self._renew())
            claiming_ = tasks.create_task(self._claim(schedules, tasks))
            await stop.wait()
            await self._stopped(claiming_)
            await self._drained()
            await self._stopped(renewing)
        with suppress(DatabaseError, TimeoutError):  # then the lease ends by itself
            await within(claiming.give_back(self.db, self.holder), seconds=1)

    async def once(self, *, agent_id: UUID, job_id: UUID) -> Outcome:
        """Does one run now and returns what came of it. Raises what it failed of, and ConflictError when another is at
        it. Whoever leaves in the middle gives it back."""
        lease = timedelta(seconds=self.pace.lease)
        claimed = await claiming.claim_one(self.db, self.holder, agent_id=agent_id, job_id=job_id, lease=lease)
        if claimed is None:
            raise ConflictError("It is at work already.", hint="`newton jobs` shows how it goes.")
        async with together() as tasks:
            renewing = tasks.create_task(self._renew())
            task = self._take(claimed, tasks)
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                await self._stopped(task)
                await claiming.give_back(self.db, self.holder)
                raise
            await self._stopped(renewing)
        ended = LostError("It was taken over by another.", hint=GOES_ON) if task.cancelled() else task.result()
        if isinstance(ended, BaseException):
            raise ended
        return ended

    async def _claim(self, schedules: Mapping[str, Schedule], tasks: asyncio.TaskGroup) -> None:
        """Slots are noted by a clock that only goes forward: one that is set back would fall silent until it has caught
        up."""
        ticked = float("-inf")
        lease = timedelta(seconds=self.pace.lease)
        while True:
            self.freed.clear()
            free = self.pace.at_once - len(self.held)
            async with self._patience():
                if stopwatch() - ticked >= self.pace.tick * 1_000:
                    await claiming.note_due(self.db, schedules)
                    await claiming.bury(self.db)
                    ticked = stopwatch()
                for claimed in await claiming.claim(self.db, self.holder, list(schedules), most=free, lease=lease):
                    self._take(claimed, tasks)
            with suppress(TimeoutError):
                await within(self.freed.wait(), seconds=self.pace.poll)

    def _take(self, claimed: Claimed, tasks: asyncio.TaskGroup) -> "asyncio.Task[BaseException | Outcome]":
        task = tasks.create_task(self._through(claimed))
        self.held[claimed.job_id] = claimed, task
        task.add_done_callback(lambda ended: self._let_go(claimed.job_id, ended))
        return task

    def _let_go(self, job_id: UUID, ended: "asyncio.Task[BaseException | Outcome]") -> None:
        if job_id in self.held and self.held[job_id][1] is ended:  # else it was claimed anew meanwhile
            del self.held[job_id]
        self.freed.set()

    async def _through(self, claimed: Claimed) -> BaseException | Outcome:
        """Does the run and ends it, well or not; returns what came of it."""
        ended = await _caught(self._done(claimed))
        if isinstance(ended, Outcome | LostError):
            return ended
        failure = self._failure(ended, claimed.attempts)
        log.warning("job_failed", job=claimed.name, attempt=claimed.attempts, error=failure.error)
        await _caught(queue.fail(self.db, claimed, failure))  # else the lease ends by itself
        return ended

    def _failure(self, error: BaseException, attempts: int) -> Failure:
        """That the database went away says nothing of the run."""
        if isinstance(error, DatabaseError):
            return Failure(error.what, timedelta(seconds=self.pace.away * random.random()), counts=False)
        return Failure(_said(error), backoff(attempts, random.random()))

    async def _done(self, claimed: Claimed) -> Outcome:
        with span(f"job {claimed.name}", agent_id=str(claimed.agent_id), attempt=claimed.attempts):
            return await queue.end(self.db, claimed, await self.run(claimed))

    async def _renew(self) -> None:
        """What another has taken over is stopped here; it could not be ended anyway."""
        while True:
            await asyncio.sleep(self.pace.renew)
            held = dict(self.held)
            if not held:
                continue
            async with self._patience():
                ours = await claiming.renew(self.db, self.holder, held, lease=timedelta(seconds=self.pace.lease))
                for job_id, (claimed, task) in held.items():
                    if ours.get(job_id) != claimed.epoch:
                        task.cancel()

    @asynccontextmanager
    async def _patience(self) -> AsyncGenerator[None]:
        """When the database is away, waits a while before the next try."""
        try:
            yield
        except DatabaseError as error:
            log.warning("database_lost", error=error.what)
            await asyncio.sleep(self.pace.away * (0.25 + 0.75 * random.random()))

    async def _drained(self) -> None:
        tasks = [task for _, task in self.held.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.pace.drain)
            await self._stopped(*late)

    async def _stopped(self, *tasks: "asyncio.Task[Any]") -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _caught(work: Awaitable[T]) -> T | BaseException:
    """What it returns, or what it fails of: a run may fail of anything, and the worker goes on."""
    (ended,) = await asyncio.gather(work, return_exceptions=True)
    return ended


def _said(error: BaseException) -> str:
    """What is kept of a failure. Of one that nobody expected the words may be a memory's, so its place is told."""
    if isinstance(error, NewtonError):
        return error.what
    if isinstance(error, TimeoutError):
        return "it took too long"
    places = traceback.extract_tb(error.__traceback__)
    at = f" at {Path(places[-1].filename).name}:{places[-1].lineno}" if places else ""
    return f"{type(error).__name__}{at}"
