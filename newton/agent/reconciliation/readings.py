"""Readings of new lines by a model in the background of a process: at most one for each agent."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from newton.agent.background_runs import BackgroundRuns

PAUSE_SECONDS = 605.0  # after the last message of an agent; then its lines have waited long enough to be read


def create_readings(*, pause_seconds: float = PAUSE_SECONDS) -> BackgroundRuns:
    return BackgroundRuns(idle_seconds=pause_seconds, failure="reading_failed")


@asynccontextmanager
async def open_readings() -> AsyncGenerator[BackgroundRuns]:
    """Yield background readings. At the end, cancel those that run: their lines stay unread for the next process."""
    readings = create_readings()
    try:
        yield readings
    finally:
        await readings.cancel()
