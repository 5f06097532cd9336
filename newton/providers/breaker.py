"""Leaves an endpoint alone that has failed several times in a row, and asks twice only within a budget."""

import functools
from dataclasses import dataclass

TRIES = 5  # failures in a row after which an endpoint is left alone
PAUSE = 15.0  # seconds; once in so many a call goes through and shows whether it answers again
BUDGET, EARNED = 3.0, 0.1  # second tries to begin with, and what each first try adds


@dataclass(slots=True)
class Breaker:
    """For one endpoint. `now` is any clock that only goes forward, in seconds."""

    failures: int = 0
    budget: float = BUDGET
    _next: float = 0.0

    def admits(self, now: float) -> bool:
        """Whether a call may be made now; while it is open, one in each pause may, whatever became of the last."""
        if self.failures >= TRIES:
            if now < self._next:
                return False
            self._next = now + PAUSE
        self.budget = min(self.budget + EARNED, BUDGET)
        return True

    def again(self) -> bool:
        """Whether a failed call may be tried once more; it is counted. Never while the endpoint seems to be away."""
        if self.failures >= TRIES or self.budget < 1:
            return False
        self.budget -= 1
        return True

    def note(self, now: float, *, failed: bool) -> None:
        """What came of a try. An answer of any kind shows that the endpoint is there."""
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        if self.failures == TRIES:
            self._next = now + PAUSE


@functools.cache
def breaker_of(address: str, model: str) -> Breaker:
    """That of an endpoint, one for all agents of the process."""
    return Breaker()
