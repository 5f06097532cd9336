"""Correction of stated confidence by a map that is fitted on earlier decisions and validated on later ones. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import computed_field

from newton.brain.calibration.scores import FloatArray, ForecastSeries
from newton.numerics import fit_isotonic_levels, minimize_convex

MIN_REVIEWS = 30
# The share of the record that the map is chosen on; the rest validates it.
TRAINING_SHARE = 2 / 3
# Forward validation within that part: fitted up to one cut, tested up to the next.
FOLD_ENDS = (0.5, 0.625, 0.75, 0.875, 1.0)
# Confidences are clipped here: there is never enough data to tell 0.99 from 0.999.
MIN_PROBABILITY, MAX_PROBABILITY = 0.01, 0.99
# Sample points of a correction map, which is continuous.
MAP_POINTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

RecalibrationMethod = Literal["none", "platt", "isotonic"]


@dataclass(frozen=True, slots=True)
class NoCorrection:
    """A correction map that leaves every stated confidence unchanged."""

    method: RecalibrationMethod = "none"

    @classmethod
    def fit(cls, _: ForecastSeries) -> "NoCorrection":
        """Return the map; the decisions do not matter."""
        return cls()

    def apply(self, stated: FloatArray) -> FloatArray:
        return stated


@dataclass(frozen=True, slots=True, kw_only=True)
class PlattScaling:
    """A correction map of confidence: a logistic curve over its log odds.

    A slope below 1 moves confidence towards 0.5.
    """

    slope: float
    intercept: float
    method: RecalibrationMethod = "platt"

    def apply(self, stated: FloatArray) -> FloatArray:
        return 1 / (1 + np.exp(-(self.intercept + self.slope * _log_odds(stated))))


@dataclass(frozen=True, slots=True, kw_only=True)
class IsotonicMap:
    """A correction map of confidence through the points (`stated`, `observed`).

    It never decreases, is linear between the points, and constant before the first and after the last.
    """

    stated: tuple[float, ...]
    observed: tuple[float, ...]
    method: RecalibrationMethod = "isotonic"

    def apply(self, stated: FloatArray) -> FloatArray:
        return np.interp(stated, self.stated, self.observed)


CorrectionMap = NoCorrection | PlattScaling | IsotonicMap


@dataclass(frozen=True, slots=True)
class CorrectedConfidence:
    """A stated confidence, and the probability of success into which a correction map converts it."""

    stated: float
    corrected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibrationResult:
    """Points of a correction map that was fitted on all reviewed decisions, and the result of its validation.

    For the validation, a map was fitted on the `earlier` decisions only. The Brier scores are those of the stated and
    of the corrected confidence on the `later` ones. Show a corrected confidence beside the stated one, never instead of
    it.
    """

    method: RecalibrationMethod
    map: tuple[CorrectedConfidence, ...]
    earlier: int
    later: int
    brier_stated: float
    brier_corrected: float

    @computed_field
    @property
    def helped(self) -> bool:
        """True if the correction lowered the Brier score (the error) of the later decisions."""
        return self.brier_corrected < self.brier_stated


def recalibrate(pairs: ForecastSeries) -> RecalibrationResult | None:
    """Fit a correction map to reviewed decisions in time order, and validate it.

    Return None if there are fewer than MIN_REVIEWS of them.
    """
    if len(pairs) < MIN_REVIEWS:
        return None
    cut = round(len(pairs) * TRAINING_SHARE)
    earlier, later = pairs.select(slice(cut)), pairs.select(slice(cut, None))
    fit = _choose_fit(earlier)
    correction = fit(pairs)
    corrected = correction.apply(np.array(MAP_POINTS)).tolist()
    return RecalibrationResult(
        method=correction.method,
        map=tuple(map(CorrectedConfidence, MAP_POINTS, corrected)),
        earlier=len(earlier),
        later=len(later),
        brier_stated=float(later.squared_errors.mean()),
        brier_corrected=float(_squared_errors(fit(earlier), later).mean()),
    )


def fit_platt(pairs: ForecastSeries) -> PlattScaling:
    """Fit Platt scaling (a logistic curve over the log odds) by maximum likelihood.

    It is regularized towards no correction, so that a few equal outcomes do not dominate.
    """
    inputs = np.stack([np.ones(len(pairs)), _log_odds(pairs.stated)], axis=1)

    def objective(point: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the penalized negative log likelihood at (intercept, slope), its gradient and its Hessian."""
        logits = inputs @ point
        expected = 1 / (1 + np.exp(-logits))
        offset = point - (0.0, 1.0)  # from no correction: intercept 0, slope 1
        total = float((np.logaddexp(0, logits) - pairs.outcome * logits).sum() + offset @ offset / 2)
        hessian = inputs.T @ (inputs * (expected * (1 - expected))[:, None]) + np.eye(2)
        return total, inputs.T @ (expected - pairs.outcome) + offset, hessian

    intercept, slope = minimize_convex(objective, np.array([0.0, 1.0]), lower=np.array([-np.inf, 0.0]))
    return PlattScaling(intercept=float(intercept), slope=float(slope))


def fit_isotonic(pairs: ForecastSeries) -> IsotonicMap:
    """Fit an isotonic regression. Decisions with equal confidence become one point."""
    stated, which, counts = np.unique(pairs.stated, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=pairs.outcome) / counts
    levels: FloatArray = fit_isotonic_levels(means, counts.astype(np.float64))
    # a point between two of the same level is on the line through them
    corner = np.ones(len(levels), dtype=bool)
    corner[1:-1] = (levels[1:-1] != levels[:-2]) | (levels[1:-1] != levels[2:])
    return IsotonicMap(stated=tuple(stated[corner].tolist()), observed=tuple(np.clip(levels[corner], 0, 1).tolist()))


def _choose_fit(earlier: ForecastSeries) -> Callable[[ForecastSeries], CorrectionMap]:
    """Return the fitting function whose map has the lowest error on later decisions, by cross-validation in time order.

    Return that of NoCorrection if no map reduces the error significantly.
    """
    cuts = [round(len(earlier) * share) for share in FOLD_ENDS]
    folds = [(earlier.select(slice(a)), earlier.select(slice(a, b))) for a, b in pairwise(cuts)]
    best: Callable[[ForecastSeries], CorrectionMap] = NoCorrection.fit
    best_gain = 0.0
    for fit in (fit_platt, fit_isotonic):
        gains = np.concatenate([after.squared_errors - _squared_errors(fit(before), after) for before, after in folds])
        if gains.mean() > max(best_gain, gains.std() / len(gains) ** 0.5):
            best, best_gain = fit, float(gains.mean())
    return best


def _squared_errors(correction: CorrectionMap, pairs: ForecastSeries) -> FloatArray:
    return (correction.apply(pairs.stated) - pairs.outcome) ** 2


def _log_odds(stated: FloatArray) -> FloatArray:
    clipped = np.clip(stated, MIN_PROBABILITY, MAX_PROBABILITY)
    return np.log(clipped / (1 - clipped))
