"""Growth of running time with the size of the input. Absolute times depend on the machine and belong in benchmarks."""

from collections.abc import Callable, Iterator
from functools import partial
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
    ratios = (_seconds(run, size) / max(_seconds(run, size // GROWTH), FLOOR_SECONDS) for _ in range(ATTEMPTS))
    _assert_any(ratios, MAX_RATIO)


def assert_quick(run: Callable[[], object]) -> None:
    """Fail when `run` takes more than `MAX_YARDSTICKS` times as long as a fixed loop does here and now.

    For work whose input cannot be scaled. One attempt of `ATTEMPTS` has to pass.
    """
    loop = partial(_seconds, lambda size: sum(n % 7 for n in range(size)), 1_000_000)
    _assert_any((_seconds(lambda _: run(), 0) / loop() for _ in range(ATTEMPTS)), MAX_YARDSTICKS)


def _assert_any(ratios: Iterator[float], limit: float) -> None:
    """Stop at the first ratio within the limit: a quick run is timed once."""
    seen: list[float] = []
    for ratio in ratios:
        seen.append(ratio)
        if ratio <= limit:
            return
    raise AssertionError(f"it takes {min(seen):.0f} times as long; {limit} times is the limit")


def _seconds(run: Callable[[int], object], size: int) -> float:
    started = thread_time()
    run(size)
    return thread_time() - started
