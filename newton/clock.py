"""Clocks. Services read the clock once per transaction and pass the time on."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time in UTC, timezone-aware."""


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that changes only by `advance`, for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta) -> None:
        self._now += delta


def monotonic_ms() -> float:
    """Return monotonic milliseconds; only differences are meaningful."""
    return time.perf_counter() * 1_000
