"""Whether more is promised than comes, and whether chance alone could look like that. Pure."""

from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from newton.brain.calibration.series import ForecastSeries

Float32Array = NDArray[np.float32]  # exact enough for a thousandth, and half the time

# At 20, someone who says 0.9 and is right 60 % of the time is found three times in four; at 10, one time in three.
MIN_REVIEWS = 20
RESAMPLES = 1_000
# The mean of more than so many is so close to normal that drawing more only takes time; the spread is scaled instead.
MAX_RESAMPLE_SIZE = 128
CONFIDENCE_LEVEL = 0.97  # more than the 95 % promised, because the ends are found by chance themselves
SEED = 20
ROUNDING_TOLERANCE = 1e-6  # rounding; no bias is that small

BiasVerdict = Literal["overconfident", "underconfident", "no sign of either", "too few reviews to say"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBias:
    """Mean confidence less mean outcome: above 0 is overconfident.

    `interval` is where it may truly lie (95 %), None below ENOUGH reviews. It is never narrower than the noise that a
    perfectly calibrated recorder of the same confidences would show, so a calibrated one is accused in fewer than one
    case in twenty, even where all outcomes are alike and a plain bootstrap would see no spread at all.
    """

    n: int
    mean_stated: float
    mean_outcome: float
    interval: tuple[float, float] | None

    @property
    def size(self) -> float:
        return self.mean_stated - self.mean_outcome

    @property
    def verdict(self) -> BiasVerdict:
        if self.interval is None:
            return "too few reviews to say"
        lower, upper = self.interval
        if lower > ROUNDING_TOLERANCE:
            return "overconfident"
        return "underconfident" if upper < -ROUNDING_TOLERANCE else "no sign of either"


def compute_bias(pairs: ForecastSeries) -> ConfidenceBias | None:
    """The bias, or None when nothing was judged. The same record always gives the same interval."""
    if len(pairs) == 0:
        return None
    return ConfidenceBias(
        n=len(pairs),
        mean_stated=float(pairs.stated.mean()),
        mean_outcome=float(pairs.outcome.mean()),
        interval=_interval(pairs) if len(pairs) >= MIN_REVIEWS else None,
    )


def _interval(pairs: ForecastSeries) -> tuple[float, float]:
    order = np.lexsort((pairs.outcome, pairs.stated))  # so that the order of arrival changes nothing
    stated, gap = pairs.stated[order].astype(np.float32), pairs.gap[order].astype(np.float32)
    drawn = min(len(pairs), MAX_RESAMPLE_SIZE)
    which, dice = _draws()
    rows = (which[:drawn] * len(pairs)).astype(np.intp)
    size = float(pairs.gap.mean())
    shrink = sqrt(drawn / len(pairs))
    resampled = _quantile_ends((gap[rows].mean(axis=0) - gap.mean()) * shrink)
    promised = stated[rows]
    calibrated = _quantile_ends((promised - (dice[:drawn] < promised)).mean(axis=0) * shrink)
    # What a calibrated recorder shows lies around 0; turned around, it says which truth could look like this.
    return size + min(resampled[0], -calibrated[1]), size + max(resampled[1], -calibrated[0])


def _quantile_ends(noise: Float32Array) -> tuple[float, float]:
    tail = (1 - CONFIDENCE_LEVEL) / 2
    lower, upper = np.quantile(noise, [tail, 1 - tail], method="inverted_cdf")
    return float(lower), float(upper)


@cache
def _draws() -> tuple[Float32Array, Float32Array]:
    """Where in the record each draw falls, as a share of its length, and the dice of the calibrated recorder."""
    rng = np.random.default_rng(SEED)
    shape = MAX_RESAMPLE_SIZE, RESAMPLES
    return rng.random(shape, dtype=np.float32), rng.random(shape, dtype=np.float32)
