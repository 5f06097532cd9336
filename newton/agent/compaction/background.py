"""Compactions in the background of a process: at most one for each session, and one after a session became idle."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import structlog

from newton.agent.compaction.block_summarizer import create_breaker
from newton.errors import NewtonError
from newton.providers.circuit_breaker import CircuitBreaker

IDLE_SECONDS = 5.0  # after the last turn of a session
FINISH_SECONDS = 20.0  # that the end of a command waits for a compaction that its answer did not wait for

SessionKey: TypeAlias = tuple[UUID, UUID]  # the ids of the agent and of the session
Compact: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


class CompactionTask(NamedTuple):
    """A running compaction, and when it was started, in seconds of the event loop."""

    task: "asyncio.Task[None]"
    started_at: float

    async def wait(self, *, seconds: float) -> None:
        """Wait for the end of the compaction, but at most so many seconds from its start."""
        left = self.started_at + seconds - asyncio.get_running_loop().time()
        await asyncio.wait({self.task}, timeout=max(left, 0.0))


class BackgroundCompactions:
    """The running compactions of a process, those that wait until a session is idle, and the breakers of their models.

    The circuit breakers are apart from those of the answers, so that failing summaries stop no answer. A session is
    idle after `idle_seconds`.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._runs: dict[SessionKey, CompactionTask] = {}
        self._timers: dict[SessionKey, asyncio.Task[None]] = {}
        self._breakers: dict[tuple[UUID, str], CircuitBreaker] = {}

    def get_breaker(self, agent_id: UUID, model: str) -> CircuitBreaker:
        """Return the circuit breaker of the model that summarizes the conversations of an agent."""
        return self._breakers.setdefault((agent_id, model), create_breaker())

    def start(self, key: SessionKey, compact: Compact) -> CompactionTask:
        """Start `compact` for a session, and return its task; if one is running already, return that one."""
        if key not in self._runs:
            task = asyncio.create_task(_run_logged(compact))
            self._runs[key] = CompactionTask(task, asyncio.get_running_loop().time())
            task.add_done_callback(lambda _: self._runs.pop(key, None))
        return self._runs[key]

    def start_when_idle(self, key: SessionKey, compact: Compact) -> None:
        """Start `compact` when the session has been idle, unless `cancel_timer` is called for the session before."""
        self.cancel_timer(key)
        self._timers[key] = asyncio.create_task(self._start_later(key, compact))

    def cancel_timer(self, key: SessionKey) -> None:
        if timer := self._timers.pop(key, None):
            timer.cancel()

    async def finish(self, *, seconds: float) -> None:
        """Wait until the running compactions have ended, but at most so many seconds."""
        if tasks := [run.task for run in self._runs.values()]:
            await asyncio.wait(tasks, timeout=seconds)

    async def cancel(self) -> None:
        """Cancel all compactions, and wait until they have ended. Summaries that are stored already are kept."""
        for key in tuple(self._timers):
            self.cancel_timer(key)
        if tasks := [run.task for run in self._runs.values()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _start_later(self, key: SessionKey, compact: Compact) -> None:
        await asyncio.sleep(self._idle_seconds)
        self._timers.pop(key, None)
        if key in self._runs:  # for another limit
            self.start_when_idle(key, compact)
        else:
            self.start(key, compact)


async def _run_logged(compact: Compact) -> None:
    try:
        await compact()
    except NewtonError as error:  # the next turn of the session compacts again
        log.warning("compaction_failed", error=error.code)


@asynccontextmanager
async def open_compactions(*, finishes: bool) -> AsyncGenerator[BackgroundCompactions]:
    """Yield background compactions. At the end, cancel those that run; if `finishes`, after FINISH_SECONDS."""
    compactions = BackgroundCompactions()
    try:
        yield compactions
        await compactions.finish(seconds=FINISH_SECONDS if finishes else 0.0)
    finally:
        await compactions.cancel()
