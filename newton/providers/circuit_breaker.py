"""Circuit breaker with a retry budget, for calls of a server that may be down."""

import functools
from dataclasses import dataclass

FAILURE_THRESHOLD = 5  # consecutive failures that open the breaker of an endpoint
COOLDOWN_SECONDS = 15.0  # seconds between probe calls while the breaker of an endpoint is open
MAX_RETRY_BUDGET, RETRY_BUDGET_PER_CALL = 3.0, 0.1  # the initial retry budget, and its increase with each call


@dataclass(slots=True)
class CircuitBreaker:
    """Pauses calls of a failing server: after `failure_threshold` failures in a row, it allows one per cooldown.

    `now` is a time in seconds; all calls must use the same clock. `retry_budget` is the number of retries left; each
    call adds a fraction. `last_failure` is a sentence about the latest failure; empty if none is recorded.
    """

    failure_threshold: int = FAILURE_THRESHOLD
    cooldown_seconds: float = COOLDOWN_SECONDS
    failures: int = 0
    retry_budget: float = MAX_RETRY_BUDGET
    last_failure: str = ""
    _next_probe: float = 0.0

    def allow_call(self, now: float) -> bool:
        """Return True if a call may be made. After too many failures, this is one call per cooldown."""
        if self.failures >= self.failure_threshold:
            if now < self._next_probe:
                return False
            self._next_probe = now + self.cooldown_seconds
        self.retry_budget = min(self.retry_budget + RETRY_BUDGET_PER_CALL, MAX_RETRY_BUDGET)
        return True

    @property
    def has_retry(self) -> bool:
        """Return True if a failed call may be retried now: calls are not paused, and retry budget is left."""
        return self.failures < self.failure_threshold and self.retry_budget >= 1

    def allow_retry(self) -> bool:
        """Return True if a failed call may be retried, and reduce the retry budget.

        Return False while calls are paused.
        """
        if not self.has_retry:
            return False
        self.retry_budget -= 1
        return True

    def record_result(self, now: float, *, failed: bool, failure: str = "") -> None:
        """Record whether an attempt failed, and with which `failure`.

        Any response of the server counts as success, even a refusal.
        """
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        self.last_failure = failure
        if self.failures == self.failure_threshold:
            self._next_probe = now + self.cooldown_seconds


@functools.cache
def get_breaker(endpoint: tuple[str, str, str], purpose: str) -> CircuitBreaker:
    """Return the circuit breaker for calls of an endpoint (upstream, address, model) for one purpose.

    All agents of the process share it.
    """
    return CircuitBreaker()
