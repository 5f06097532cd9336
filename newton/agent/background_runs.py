"""Tasks in the background of a process, such as compactions: at most one for each key, and one after a pause."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import structlog

from newton.agent.compaction.block_summarizer import create_breaker
from newton.errors import NewtonError
from newton.providers.upstreams import CircuitBreaker

RunKey: TypeAlias = tuple[UUID, UUID]  # the ids of the agent and of the session or the agent
Run: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


class BackgroundRun(NamedTuple):
    """A running task, and when it was started, in seconds of the event loop."""

    task: "asyncio.Task[None]"
    started_at: float

    async def wait(self, *, seconds: float) -> None:
        """Wait for the end of the task, at most until `seconds` after its start."""
        left = self.started_at + seconds - asyncio.get_running_loop().time()
        await asyncio.wait({self.task}, timeout=max(left, 0.0))


class BackgroundRuns:
    """The running tasks of a process, at most one per key, and those that wait for a pause of `idle_seconds`.

    An error of Newton ends a task and is logged as the event `failure`.
    """

    def __init__(self, *, idle_seconds: float, failure: str) -> None:
        self._idle_seconds, self._failure = idle_seconds, failure
        self._runs: dict[RunKey, BackgroundRun] = {}
        self._timers: dict[RunKey, asyncio.Task[None]] = {}

    def start(self, key: RunKey, run: Run) -> BackgroundRun:
        """Start `run` for a key, and return its task; if one is running already, return that one."""
        if key not in self._runs:
            task = asyncio.create_task(self._run_logged(run))
            self._runs[key] = BackgroundRun(task, asyncio.get_running_loop().time())
            task.add_done_callback(lambda _: self._runs.pop(key, None))
        return self._runs[key]

    def start_when_idle(self, key: RunKey, run: Run) -> None:
        """Start `run` after a pause of `idle_seconds`.

        It is not started if this method or `cancel_timer` is called for the key before.
        """
        self.cancel_timer(key)
        self._timers[key] = asyncio.create_task(self._start_later(key, run))

    def cancel_timer(self, key: RunKey) -> None:
        """Do not start the run that waits for a pause, if there is one for the key."""
        if timer := self._timers.pop(key, None):
            timer.cancel()

    async def finish(self, *, seconds: float) -> None:
        """Wait until the running tasks have ended, at most `seconds`."""
        if tasks := [run.task for run in self._runs.values()]:
            await asyncio.wait(tasks, timeout=seconds)

    async def cancel(self) -> None:
        """Cancel all tasks, and wait until they have ended. What they have stored already is kept."""
        for key in tuple(self._timers):
            self.cancel_timer(key)
        if tasks := [run.task for run in self._runs.values()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _start_later(self, key: RunKey, run: Run) -> None:
        await asyncio.sleep(self._idle_seconds)
        self._timers.pop(key, None)
        if key in self._runs:
            self.start_when_idle(key, run)
        else:
            self.start(key, run)

    async def _run_logged(self, run: Run) -> None:
        try:
            await run()
        except NewtonError as error:  # a later run does the same
            log.warning(self._failure, error=error.code)


IDLE_SECONDS = 5.0  # after the last turn of a session
FINISH_SECONDS = 20.0  # that the end of a command waits for a compaction that its answer did not wait for


class BackgroundCompactions(BackgroundRuns):
    """The running compactions of a process, those that wait until a session is idle, and the breakers of their models.

    A compaction replaces old messages by summaries. A circuit breaker stops calls to a model that fails; these are
    apart from those of the answers, so that failing summaries stop no answer. A session is idle after `idle_seconds`.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        super().__init__(idle_seconds=idle_seconds, failure="compaction_failed")
        self._breakers: dict[tuple[UUID, str], CircuitBreaker] = {}

    def get_breaker(self, agent_id: UUID, model: str) -> CircuitBreaker:
        """Return the circuit breaker of the model that summarizes the conversations of an agent."""
        return self._breakers.setdefault((agent_id, model), create_breaker())


@asynccontextmanager
async def open_compactions(*, finishes: bool) -> AsyncGenerator[BackgroundCompactions]:
    """Yield background compactions (which summarize old messages). At the end, cancel those that run.

    If `finishes`, wait FINISH_SECONDS for them first.
    """
    compactions = BackgroundCompactions()
    try:
        yield compactions
        await compactions.finish(seconds=FINISH_SECONDS if finishes else 0.0)
    finally:
        await compactions.cancel()


PAUSE_SECONDS = 605.0  # after the last message of an agent; then its lines have waited long enough to be read


def create_readings(*, pause_seconds: float = PAUSE_SECONDS) -> BackgroundRuns:
    """Return the background runs in which a model reads new messages for facts, after a pause of an agent."""
    return BackgroundRuns(idle_seconds=pause_seconds, failure="reading_failed")


@asynccontextmanager
async def open_readings() -> AsyncGenerator[BackgroundRuns]:
    """Yield background runs that read new messages for facts. At the end, cancel those that run.

    Their messages stay unread for the next process.
    """
    readings = create_readings()
    try:
        yield readings
    finally:
        await readings.cancel()
