"""Leaves an endpoint alone that has failed several times in a row, and asks twice only within a budget."""

import functools
from dataclasses import dataclass

FAILURE_THRESHOLD = 5  # failures in a row after which an endpoint is left alone
COOLDOWN_SECONDS = 15.0  # seconds; once in so many a call goes through and shows whether it answers again
MAX_RETRY_BUDGET, RETRY_BUDGET_PER_CALL = 3.0, 0.1  # second tries to begin with, and what each first try adds


@dataclass(slots=True)
class CircuitBreaker:
    """For one endpoint. `now` is any clock that only goes forward, in seconds."""

    failures: int = 0
    retry_budget: float = MAX_RETRY_BUDGET
    _next_probe: float = 0.0

    def allow_call(self, now: float) -> bool:
        """Whether a call may be made now; while it is open, one in each pause may, whatever became of the last."""
        if self.failures >= FAILURE_THRESHOLD:
            if now < self._next_probe:
                return False
            self._next_probe = now + COOLDOWN_SECONDS
        self.retry_budget = min(self.retry_budget + RETRY_BUDGET_PER_CALL, MAX_RETRY_BUDGET)
        return True

    def allow_retry(self) -> bool:
        """Whether a failed call may be tried once more; it is counted. Never while the endpoint seems to be away."""
        if self.failures >= FAILURE_THRESHOLD or self.retry_budget < 1:
            return False
        self.retry_budget -= 1
        return True

    def record_result(self, now: float, *, failed: bool) -> None:
        """What came of a try. An answer of any kind shows that the endpoint is there."""
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        if self.failures == FAILURE_THRESHOLD:
            self._next_probe = now + COOLDOWN_SECONDS


@functools.cache
def get_breaker(address: str, model: str) -> CircuitBreaker:
    """That of an endpoint, one for all agents of the process."""
    return CircuitBreaker()
