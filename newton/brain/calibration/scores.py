"""Scores of how well stated confidence agrees with outcomes: Brier score, log loss, ECE and others. Pure."""

from dataclasses import dataclass
from math import sqrt
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, computed_field

from newton.brain.calibration.series import FloatArray, ForecastSeries, IndexArray

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
    """Return the Wilson score interval of a share of `n` trials, 95 % by default.

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
