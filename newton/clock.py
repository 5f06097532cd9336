"""The one way to ask what time it is. Services ask once per unit of work and pass the answer down."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """An aware time in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when it is told to: for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def advance(self, delta: timedelta) -> None:
        self._now += delta


def monotonic_ms() -> float:
    """Milliseconds on a clock that never jumps; only differences mean anything."""
    return time.perf_counter() * 1_000
