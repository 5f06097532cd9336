"""Circuit breaker and retry budget for an endpoint."""

import functools
from dataclasses import dataclass

FAILURE_THRESHOLD = 5  # consecutive failures that open the breaker
COOLDOWN_SECONDS = 15.0  # seconds between probe calls while the breaker is open
MAX_RETRY_BUDGET, RETRY_BUDGET_PER_CALL = 3.0, 0.1  # the initial retry budget, and its increase with each call


@dataclass(slots=True)
class CircuitBreaker:
    """The breaker of one endpoint. `now` is monotonic time in seconds."""

    failures: int = 0
    retry_budget: float = MAX_RETRY_BUDGET
    _next_probe: float = 0.0

    def allow_call(self, now: float) -> bool:
        """Return True when a call may be made; while the breaker is open, one probe per cooldown may."""
        if self.failures >= FAILURE_THRESHOLD:
            if now < self._next_probe:
                return False
            self._next_probe = now + COOLDOWN_SECONDS
        self.retry_budget = min(self.retry_budget + RETRY_BUDGET_PER_CALL, MAX_RETRY_BUDGET)
        return True

    def allow_retry(self) -> bool:
        """Return True and spend budget when a failed call may be retried; never while the breaker is open."""
        if self.failures >= FAILURE_THRESHOLD or self.retry_budget < 1:
            return False
        self.retry_budget -= 1
        return True

    def record_result(self, now: float, *, failed: bool) -> None:
        """Record the result of an attempt. Any response, also a refusal, counts as success."""
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        if self.failures == FAILURE_THRESHOLD:
            self._next_probe = now + COOLDOWN_SECONDS


@functools.cache
def get_breaker(address: str, model: str) -> CircuitBreaker:
    """Return the breaker of an endpoint and model, shared by all agents of the process."""
    return CircuitBreaker()
