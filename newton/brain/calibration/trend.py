"""The trend of calibration over time, and the detection of drift. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Literal

import numpy as np
from pydantic import computed_field

from newton.brain.calibration.scores import Z95
from newton.brain.calibration.series import FloatArray, ForecastSeries, IndexArray
from newton.brain.draft import ReviewedDecision

# A Brier score of fewer decisions is mostly noise.
WINDOW_SIZE = 20
MAX_WINDOWS = 12
RECENT_COUNT = 50
MIN_BRIER_RISE = 0.02
MIN_ACCURACY_FALL = 0.15
ROUNDING_TOLERANCE = 1e-9  # differences below it are rounding

Direction = Literal["rising", "falling", "no clear change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendWindow:
    """The scores of consecutive decisions. `start` and `end` are the times of the first and the last decision."""

    start: datetime
    end: datetime
    n: int
    base_rate: float
    brier: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendSlope:
    """The change of a score per 100 decisions, with its 95 % interval, from a least-squares line over the decisions."""

    per_100: float
    interval95: tuple[float, float]

    @computed_field
    @property
    def direction(self) -> Direction:
        lower, upper = self.interval95
        if lower > ROUNDING_TOLERANCE:
            return "rising"
        return "falling" if upper < -ROUNDING_TOLERANCE else "no clear change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationDrift:
    """The scores of the latest decisions and of all earlier ones. `reasons` is empty if there is no drift."""

    recent_brier: float
    earlier_brier: float
    recent_accuracy: float
    earlier_accuracy: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTrend:
    """The calibration over time: the scores of each window, the slopes of Brier score and bias, and the drift.

    `drift` is None with too few decisions.
    """

    windows: tuple[TrendWindow, ...]
    brier: TrendSlope
    bias: TrendSlope
    drift: CalibrationDrift | None


def compute_trend(decisions: Sequence[ReviewedDecision], pairs: ForecastSeries) -> CalibrationTrend | None:
    """Return the trend of decisions that are in time order; None if they do not fill two windows."""
    if len(pairs) < 2 * WINDOW_SIZE:
        return None
    count = min(MAX_WINDOWS, len(pairs) // WINDOW_SIZE)
    parts: list[IndexArray] = np.array_split(np.arange(len(pairs)), count)
    return CalibrationTrend(
        windows=tuple(_window(decisions, pairs, part) for part in parts),
        brier=fit_slope(pairs.squared_errors),
        bias=fit_slope(pairs.gap),
        drift=_drift(pairs),
    )


def fit_slope(values: FloatArray) -> TrendSlope:
    """Fit a line to values in time order, and return its slope with heteroskedasticity-robust (White) errors."""
    time = np.arange(len(values)) / 100
    time -= time.mean()
    spread = float(time @ time)
    slope = float(time @ values) / spread
    residuals = values - values.mean() - slope * time
    margin = Z95 * sqrt(float(time**2 @ residuals**2)) / spread
    return TrendSlope(per_100=slope, interval95=(slope - margin, slope + margin))


def _window(decisions: Sequence[ReviewedDecision], pairs: ForecastSeries, part: IndexArray) -> TrendWindow:
    own = pairs.select(part)
    return TrendWindow(
        start=decisions[int(part[0])].decided_at,
        end=decisions[int(part[-1])].decided_at,
        n=len(own),
        base_rate=float(own.outcome.mean()),
        brier=float(own.squared_errors.mean()),
        bias=float(own.gap.mean()),
    )


def _drift(pairs: ForecastSeries) -> CalibrationDrift | None:
    if len(pairs) < 2 * RECENT_COUNT:
        return None
    recent, before = pairs.select(slice(-RECENT_COUNT, None)), pairs.select(slice(-RECENT_COUNT))
    reasons: list[str] = []
    if _rises_beyond(recent.squared_errors, before.squared_errors, min_rise=MIN_BRIER_RISE):
        reasons.append("Brier score rises")
    if _rises_beyond(-recent.outcome, -before.outcome, min_rise=MIN_ACCURACY_FALL):
        reasons.append("accuracy falls")
    return CalibrationDrift(
        recent_brier=float(recent.squared_errors.mean()),
        earlier_brier=float(before.squared_errors.mean()),
        recent_accuracy=float(recent.outcome.mean()),
        earlier_accuracy=float(before.outcome.mean()),
        reasons=tuple(reasons),
    )


def _rises_beyond(recent: FloatArray, before: FloatArray, *, min_rise: float) -> bool:
    """Return whether the mean rises by more than `min_rise`, and significantly at the 95 % level."""
    rise = float(recent.mean() - before.mean())
    return rise > min_rise and rise > Z95 * sqrt(recent.var() / len(recent) + before.var() / len(before))
