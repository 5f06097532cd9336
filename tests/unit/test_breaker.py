"""An endpoint that fails is left alone, and asked again often enough to see that it is back."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from newton.providers.breaker import BUDGET, EARNED, PAUSE, TRIES, Breaker


def down(breaker: Breaker, *, at: float = 0.0) -> Breaker:
    for _ in range(TRIES):
        assert breaker.admits(at)
        breaker.note(at, failed=True)
    return breaker


def test_it_opens_after_a_few_failures_in_a_row_and_not_before() -> None:
    # R8: it opens after at most 10
    breaker = Breaker()
    for _ in range(3):
        for _ in range(TRIES - 1):
            breaker.note(0, failed=True)
        breaker.note(0, failed=False)
    assert breaker.admits(0)
    assert TRIES <= 10
    assert not down(Breaker()).admits(0)


@given(st.lists(st.floats(0.01, 5), min_size=1, max_size=60))
def test_while_it_is_open_one_call_in_each_pause_goes_through(steps: list[float]) -> None:
    # R8: what works again is seen within 60 s
    breaker, now, admitted = down(Breaker()), 0.0, [0.0]
    for step in steps:
        now += step
        if breaker.admits(now):
            admitted.append(now)  # what came of it is not known yet, as with an endpoint that hangs
    assert all(later - earlier >= PAUSE for earlier, later in pairwise(admitted))
    assert now - admitted[-1] < PAUSE + max(steps)
    assert PAUSE + 5 < 60


def test_one_answer_closes_it() -> None:
    breaker = down(Breaker())
    assert breaker.admits(PAUSE)
    breaker.note(PAUSE, failed=False)
    assert breaker.admits(PAUSE)


@given(st.integers(1, 500))
def test_second_tries_are_few_beside_first_ones(firsts: int) -> None:
    # R8: attempts are at most 1.1 times the first ones, and a few to begin with
    breaker, again = Breaker(), 0
    for _ in range(firsts):
        assert breaker.admits(0)
        again += breaker.again()
        breaker.note(0, failed=False)
    assert again <= EARNED * firsts + BUDGET
    assert not down(Breaker()).again()
