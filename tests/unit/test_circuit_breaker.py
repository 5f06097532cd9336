"""The circuit breaker opens for a failing endpoint and probes it until it recovers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from newton.providers.circuit_breaker import (
    COOLDOWN_SECONDS,
    FAILURE_THRESHOLD,
    MAX_RETRY_BUDGET,
    RETRY_BUDGET_PER_CALL,
    CircuitBreaker,
)


def down(breaker: CircuitBreaker, *, at: float = 0.0) -> CircuitBreaker:
    for _ in range(FAILURE_THRESHOLD):
        assert breaker.allow_call(at)
        breaker.record_result(at, failed=True)
    return breaker


def test_it_opens_after_a_few_failures_in_a_row_and_one_answer_closes_it() -> None:
    # R8
    # it opens after at most 10
    breaker = CircuitBreaker()
    for _ in range(3):
        for _ in range(FAILURE_THRESHOLD - 1):
            breaker.record_result(0, failed=True)
        breaker.record_result(0, failed=False)
    assert breaker.allow_call(0)
    assert FAILURE_THRESHOLD <= 10
    assert not down(CircuitBreaker()).allow_call(0)
    # one answer closes it
    breaker = down(CircuitBreaker())
    assert breaker.allow_call(COOLDOWN_SECONDS)
    breaker.record_result(COOLDOWN_SECONDS, failed=False)
    assert breaker.allow_call(COOLDOWN_SECONDS)


@given(st.lists(st.floats(0.01, 5), min_size=1, max_size=60))
def test_while_it_is_open_one_call_in_each_pause_goes_through(steps: list[float]) -> None:
    # R8: what works again is seen within 60 s
    breaker, now, admitted = down(CircuitBreaker()), 0.0, [0.0]
    for step in steps:
        now += step
        if breaker.allow_call(now):
            admitted.append(now)  # what came of it is not known yet, as with an endpoint that hangs
    assert all(later - earlier >= COOLDOWN_SECONDS for earlier, later in pairwise(admitted))
    assert now - admitted[-1] < COOLDOWN_SECONDS + max(steps)
    assert COOLDOWN_SECONDS + 5 < 60


@given(st.integers(1, 500))
def test_second_tries_are_few_beside_first_ones(firsts: int) -> None:
    # R8: attempts are at most 1.1 times the first ones, and a few to begin with
    breaker, again = CircuitBreaker(), 0
    for _ in range(firsts):
        assert breaker.allow_call(0)
        again += breaker.allow_retry()
        breaker.record_result(0, failed=False)
    assert again <= RETRY_BUDGET_PER_CALL * firsts + MAX_RETRY_BUDGET
    assert not down(CircuitBreaker()).allow_retry()
