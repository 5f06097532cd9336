"""Over- and underconfidence of stated confidence, with a confidence interval. Pure."""

from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from newton.brain.calibration.series import ForecastSeries

Float32Array = NDArray[np.float32]  # exact to 0.001, in half the time of float64

# At 20 a stated 0.9 with 60 % success is detected in 3 of 4 cases, at 10 in 1 of 3.
MIN_REVIEWS_FOR_BIAS = 20
RESAMPLES = 1_000
# The mean of more is nearly normal, so the spread is scaled instead of drawing more samples.
MAX_RESAMPLE_SIZE = 128
CONFIDENCE_LEVEL = 0.97  # above the nominal 95 %, because the bounds are sampled too
SEED = 20
ROUNDING_TOLERANCE = 1e-6  # differences below it are rounding

BiasVerdict = Literal["overconfident", "underconfident", "no sign of either", "too few reviews to say"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceBias:
    """The bias of stated confidence: `size` is mean confidence minus mean outcome, so overconfidence is positive.

    `interval95` is a 95 % bootstrap interval of the size, None with few reviews. It is never narrower than the sampling
    noise of a perfectly calibrated agent with the same confidences, so a calibrated agent is called biased in under 5 %
    of cases.
    """

    n: int
    mean_stated: float
    mean_outcome: float
    interval95: tuple[float, float] | None

    @computed_field
    @property
    def size(self) -> float:
        return self.mean_stated - self.mean_outcome

    @computed_field
    @property
    def verdict(self) -> BiasVerdict:
        if self.interval95 is None:
            return "too few reviews to say"
        lower, upper = self.interval95
        if lower > ROUNDING_TOLERANCE:
            return "overconfident"
        return "underconfident" if upper < -ROUNDING_TOLERANCE else "no sign of either"


def compute_bias(pairs: ForecastSeries) -> ConfidenceBias | None:
    """Return the bias of stated confidence; None without reviews. Equal data gives an equal result."""
    if len(pairs) == 0:
        return None
    return ConfidenceBias(
        n=len(pairs),
        mean_stated=float(pairs.stated.mean()),
        mean_outcome=float(pairs.outcome.mean()),
        interval95=_interval(pairs) if len(pairs) >= MIN_REVIEWS_FOR_BIAS else None,
    )


def _interval(pairs: ForecastSeries) -> tuple[float, float]:
    order = np.lexsort((pairs.outcome, pairs.stated))  # makes the result independent of input order
    stated, gap = pairs.stated[order].astype(np.float32), pairs.gap[order].astype(np.float32)
    sample_size = min(len(pairs), MAX_RESAMPLE_SIZE)
    positions, outcomes = _draws()
    rows = (positions[:sample_size] * len(pairs)).astype(np.intp)
    size, shrink = float(pairs.gap.mean()), sqrt(sample_size / len(pairs))
    resampled = _quantile_ends((gap[rows].mean(axis=0) - gap.mean()) * shrink)
    forecasts = stated[rows]
    calibrated = _quantile_ends((forecasts - (outcomes[:sample_size] < forecasts)).mean(axis=0) * shrink)
    # The noise of a calibrated agent around 0, mirrored to bound the true bias.
    return size + min(resampled[0], -calibrated[1]), size + max(resampled[1], -calibrated[0])


def _quantile_ends(noise: Float32Array) -> tuple[float, float]:
    tail = (1 - CONFIDENCE_LEVEL) / 2
    lower, upper = np.quantile(noise, [tail, 1 - tail], method="inverted_cdf")
    return float(lower), float(upper)


@cache
def _draws() -> tuple[Float32Array, Float32Array]:
    """Return fixed random numbers in [0, 1): to draw positions, and to draw outcomes of a calibrated agent."""
    rng = np.random.default_rng(SEED)
    shape = MAX_RESAMPLE_SIZE, RESAMPLES
    return rng.random(shape, dtype=np.float32), rng.random(shape, dtype=np.float32)
