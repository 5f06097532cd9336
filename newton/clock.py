"""Clocks that return the current time. A service reads its clock once per transaction and passes the time on."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time in UTC, timezone-aware."""
        ...


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock for tests and simulations; its time changes only when `advance` is called."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta) -> None:
        self._now += delta


def monotonic_ms() -> float:
    """Return the milliseconds of a monotonic clock. Its zero is arbitrary, so only differences are meaningful."""
    return time.perf_counter() * 1_000
