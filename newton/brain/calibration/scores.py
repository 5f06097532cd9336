"""Scores of how well stated confidence agrees with outcomes (Brier, log loss, ECE, bias and others). Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, computed_field

from newton.brain.drafts import OUTCOME_SCORES, ReviewedDecision
from newton.errors import InputError

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class ForecastSeries:
    """Two arrays with one element for each decision: the stated confidence, and the outcome as a number.

    Success is 1, partial success 0.5, failure 0.
    """

    stated: FloatArray
    outcome: FloatArray

    def __len__(self) -> int:
        return len(self.stated)

    def select(self, indices: IndexArray | slice) -> "ForecastSeries":
        """Return the decisions at these indices, in the order of the indices."""
        return ForecastSeries(self.stated[indices], self.outcome[indices])

    @property
    def gap(self) -> FloatArray:
        """The confidence of each decision minus the value of its outcome; positive is overconfident."""
        return self.stated - self.outcome

    @property
    def squared_errors(self) -> FloatArray:
        """The squared difference of confidence and outcome of each decision; the mean is the Brier score."""
        return self.gap**2


def sort_by_time(decisions: Iterable[ReviewedDecision]) -> tuple[ReviewedDecision, ...]:
    """Return the decisions sorted by decision time, then by review time and id."""
    return tuple(sorted(decisions, key=lambda one: (one.decided_at, one.reviewed_at, one.decision_id.int)))


def to_series(decisions: Sequence[ReviewedDecision]) -> ForecastSeries:
    """Return the confidences and outcomes of decisions, in order. Raises InputError for a confidence outside [0, 1]."""
    stated = np.array([one.confidence for one in decisions], dtype=np.float64)
    if not np.all((stated >= 0) & (stated <= 1)):
        raise InputError("A confidence is outside 0 to 1.", hint="Give a confidence from 0 to 1, such as 0.8.")
    return ForecastSeries(stated, np.array([OUTCOME_SCORES[one.outcome] for one in decisions], dtype=np.float64))


BIN_COUNT = 10
# Forecasts are clipped to this distance from 0 and 1, because the logarithm is unbounded there.
LOG_CLIP = 1e-6
Z95 = 1.96

RoundedShare = Annotated[float, PlainSerializer(lambda share: round(share, 4))]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """The decisions with a confidence from `low` to below `high`; the last bin includes `high`.

    `wilson95` is the Wilson interval of the success rate. It is slightly too wide with partial outcomes.
    """

    low: float
    high: float
    n: int
    mean_forecast: RoundedShare
    observed: RoundedShare
    wilson95: tuple[RoundedShare, RoundedShare]

    @computed_field
    @property
    def bin(self) -> str:
        return f"{self.low:.1f}-{self.high:.1f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationScores:
    """The scores of reviewed decisions. A partial outcome counts 0.5; `partials` is the number of such outcomes.

    `brier_skill_vs_base` is None when all outcomes are equal, because the base rate then has no error to improve on.
    `uncertainty` is the variance of the outcomes; if none is partial, this is base rate x (1 - base rate). Empty bins
    are omitted.
    """

    n: int
    partials: int
    base_rate: float
    brier: float
    brier_skill_vs_base: float | None
    log_loss: float
    ece10: float
    ece10_equal_mass: float
    mce10: float
    reliability: float
    resolution: float
    uncertainty: float
    sharpness_var: float
    bins: tuple[CalibrationBin, ...]


def compute_scores(pairs: ForecastSeries) -> CalibrationScores | None:
    """Return the calibration scores; None without decisions."""
    if len(pairs) == 0:
        return None
    base = float(pairs.outcome.mean())
    brier = float(pairs.squared_errors.mean())
    uncertainty = float(((pairs.outcome - base) ** 2).mean())
    bins = _bins(pairs)
    weights = np.array([one.n for one in bins]) / len(pairs)
    observed = np.array([one.observed for one in bins])
    gaps = np.array([one.mean_forecast for one in bins]) - observed
    return CalibrationScores(
        n=len(pairs),
        partials=int((pairs.outcome == 0.5).sum()),
        base_rate=base,
        brier=brier,
        brier_skill_vs_base=1 - brier / uncertainty if np.ptp(pairs.outcome) > 0 else None,
        log_loss=_log_loss(pairs),
        ece10=float(weights @ np.abs(gaps)),
        ece10_equal_mass=_equal_mass_error(pairs),
        mce10=float(np.abs(gaps).max()),
        reliability=float(weights @ gaps**2),
        resolution=float(weights @ (observed - base) ** 2),
        uncertainty=uncertainty,
        sharpness_var=float(pairs.stated.var()),
        bins=bins,
    )


def wilson_interval(share: float, n: int, *, z: float = Z95) -> tuple[float, float]:
    """Return the Wilson score interval of a share of `n` trials: its lower and upper end, 95 % by default.

    >>> [round(end, 4) for end in wilson_interval(0.0, 1)]
    [0.0, 0.7935]
    """
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    margin = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - margin), min(1.0, middle + margin)


def _bins(pairs: ForecastSeries) -> tuple[CalibrationBin, ...]:
    edges = np.arange(1, BIN_COUNT) / BIN_COUNT
    numbers = np.searchsorted(edges, pairs.stated, side="right")
    return tuple(
        _bin(number, pairs.select(np.flatnonzero(numbers == number))) for number in np.unique(numbers).tolist()
    )


def _bin(number: int, pairs: ForecastSeries) -> CalibrationBin:
    observed = float(pairs.outcome.mean())
    return CalibrationBin(
        low=number / BIN_COUNT,
        high=(number + 1) / BIN_COUNT,
        n=len(pairs),
        mean_forecast=float(pairs.stated.mean()),
        observed=observed,
        wilson95=wilson_interval(observed, len(pairs)),
    )


def _log_loss(pairs: ForecastSeries) -> float:
    stated = np.clip(pairs.stated, LOG_CLIP, 1 - LOG_CLIP)
    return float(-(pairs.outcome * np.log(stated) + (1 - pairs.outcome) * np.log1p(-stated)).mean())


def _equal_mass_error(pairs: ForecastSeries) -> float:
    """Return the calibration error over ten groups of nearly equal size, in order of confidence.

    Decisions with equal confidence count with their mean outcome, so that their order does not change the result.
    """
    order = np.argsort(pairs.stated, kind="stable")
    stated, outcome = pairs.stated[order], _group_means(pairs)[order]
    groups: list[IndexArray] = np.array_split(np.arange(len(pairs)), min(BIN_COUNT, len(pairs)))
    return sum(abs(float((stated[group] - outcome[group]).sum())) for group in groups) / len(pairs)


def _group_means(pairs: ForecastSeries) -> FloatArray:
    """Return for each decision the mean outcome of all decisions of the same confidence."""
    _, which, counts = np.unique(pairs.stated, return_inverse=True, return_counts=True)
    return (np.bincount(which, weights=pairs.outcome) / counts)[which]


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
    """The bias of stated confidence. `size` is mean confidence minus mean outcome, so overconfidence is positive.

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
        """The bias in words; it is stated only if 0 is outside the interval."""
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
    """Return the 95 % bootstrap interval of the bias; it covers at least the noise of a calibrated agent."""
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
