"""Compactions in the background of a process: at most one for each session, and one after a session became idle."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from newton.agent.background_runs import BackgroundRuns
from newton.agent.compaction.block_summarizer import create_breaker
from newton.providers.upstreams import CircuitBreaker

IDLE_SECONDS = 5.0  # after the last turn of a session
FINISH_SECONDS = 20.0  # that the end of a command waits for a compaction that its answer did not wait for


class BackgroundCompactions(BackgroundRuns):
    """The running compactions of a process, those that wait until a session is idle, and the breakers of their models.

    The circuit breakers are apart from those of the answers, so that failing summaries stop no answer. A session is
    idle after `idle_seconds`.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        super().__init__(idle_seconds=idle_seconds, failure="compaction_failed")
        self._breakers: dict[tuple[UUID, str], CircuitBreaker] = {}

    def get_breaker(self, agent_id: UUID, model: str) -> CircuitBreaker:
        """Return the circuit breaker of the model that summarizes the conversations of an agent."""
        return self._breakers.setdefault((agent_id, model), create_breaker())


@asynccontextmanager
async def open_compactions(*, finishes: bool) -> AsyncGenerator[BackgroundCompactions]:
    """Yield background compactions. At the end, cancel those that run; if `finishes`, after FINISH_SECONDS."""
    compactions = BackgroundCompactions()
    try:
        yield compactions
        await compactions.finish(seconds=FINISH_SECONDS if finishes else 0.0)
    finally:
        await compactions.cancel()
