"""Growth of running time with the size of the input. Absolute times depend on the machine and belong in benchmarks."""

from collections.abc import Callable
from time import thread_time

GROWTH = 8  # by which the larger input is larger: linear time grows 8-fold, quadratic time 64-fold
MAX_RATIO = 3 * GROWTH
FLOOR_SECONDS = 0.005  # a shorter time of the smaller input is mostly noise
ATTEMPTS = 3
MAX_YARDSTICKS = 30


def assert_near_linear(run: Callable[[int], object], size: int) -> None:
    """Fail when `run(size)` takes more than three times what linear growth from `run(size // GROWTH)` allows.

    `run` takes the size of its input. Time is processor time of this thread: the load of other processes does not
    count. One attempt of `ATTEMPTS` has to pass. The input is made within the time, so it must be cheap to make.
    """
    for _ in range(ATTEMPTS):
        small, large = _seconds(run, size // GROWTH), _seconds(run, size)
        if large <= MAX_RATIO * max(small, FLOOR_SECONDS):
            return
    raise AssertionError(f"{GROWTH} times the input takes {large / max(small, FLOOR_SECONDS):.0f} times as long")


def assert_quick(run: Callable[[], object]) -> None:
    """Fail when `run` takes more than `MAX_YARDSTICKS` times as long as a fixed loop does here and now.

    For work whose input cannot be scaled. One attempt of `ATTEMPTS` has to pass.
    """
    for _ in range(ATTEMPTS):
        yardstick = _seconds(lambda size: sum(n % 7 for n in range(size)), 1_000_000)
        spent = _seconds(lambda _: run(), 0)
        if spent <= MAX_YARDSTICKS * yardstick:
            return
    raise AssertionError(f"it takes {spent / yardstick:.0f} times as long as a million steps of a loop")


def _seconds(run: Callable[[int], object], size: int) -> float:
    started = thread_time()
    run(size)
    return thread_time() - started
