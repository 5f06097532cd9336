"""Circuit breaker with a retry budget."""

import functools
from dataclasses import dataclass

FAILURE_THRESHOLD = 5  # consecutive failures that open the breaker of an endpoint
COOLDOWN_SECONDS = 15.0  # seconds between probe calls while the breaker of an endpoint is open
MAX_RETRY_BUDGET, RETRY_BUDGET_PER_CALL = 3.0, 0.1  # the initial retry budget, and its increase with each call


@dataclass(slots=True)
class CircuitBreaker:
    """A circuit breaker: after `failure_threshold` consecutive failures it allows one call per cooldown, as a probe.

    `now` is a time in seconds, always of the same clock.
    """

    failure_threshold: int = FAILURE_THRESHOLD
    cooldown_seconds: float = COOLDOWN_SECONDS
    failures: int = 0
    retry_budget: float = MAX_RETRY_BUDGET
    _next_probe: float = 0.0

    def allow_call(self, now: float) -> bool:
        """Return True if a call may be made. An open breaker allows one probe call per cooldown."""
        if self.failures >= self.failure_threshold:
            if now < self._next_probe:
                return False
            self._next_probe = now + self.cooldown_seconds
        self.retry_budget = min(self.retry_budget + RETRY_BUDGET_PER_CALL, MAX_RETRY_BUDGET)
        return True

    def allow_retry(self) -> bool:
        """Return True, and reduce the retry budget, if a failed call may be retried; never while open."""
        if self.failures >= self.failure_threshold or self.retry_budget < 1:
            return False
        self.retry_budget -= 1
        return True

    def record_result(self, now: float, *, failed: bool) -> None:
        """Record whether an attempt failed. Any response from the endpoint, even a refusal, is a success."""
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        if self.failures == self.failure_threshold:
            self._next_probe = now + self.cooldown_seconds


@functools.cache
def get_breaker(endpoint: tuple[str, str, str]) -> CircuitBreaker:
    """Return the breaker of an endpoint (upstream, address, model), shared by all agents of the process."""
    return CircuitBreaker()
