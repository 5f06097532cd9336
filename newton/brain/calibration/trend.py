"""How the judgement changes from decision to decision, and whether the latest are worse. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Literal

import numpy as np

from newton.brain.calibration.scores import Z95
from newton.brain.calibration.series import FloatArray, ForecastSeries, IndexArray
from newton.brain.draft import ReviewedDecision

# A Brier score of fewer decisions says more about chance than about judgement.
WINDOW_SIZE = 20
MAX_WINDOWS = 12
RECENT_COUNT = 50
MIN_BRIER_RISE = 0.02
MIN_ACCURACY_FALL = 0.15
ROUNDING_TOLERANCE = 1e-9  # rounding: what never changes has no slope

Direction = Literal["rising", "falling", "no clear change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendWindow:
    """Neighbours in time. `start` and `end` are when the first and the last of them was decided."""

    start: datetime
    end: datetime
    n: int
    base_rate: float
    brier: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendSlope:
    """The change over 100 decisions, with its 95 % interval: least squares over single decisions."""

    per_100: float
    interval: tuple[float, float]

    @property
    def direction(self) -> Direction:
        lower, upper = self.interval
        if lower > ROUNDING_TOLERANCE:
            return "rising"
        return "falling" if upper < -ROUNDING_TOLERANCE else "no clear change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationDrift:
    """The last RECENT decisions beside all before them. `reasons` is empty when there is no drift."""

    recent_brier: float
    earlier_brier: float
    recent_accuracy: float
    earlier_accuracy: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTrend:
    """`drift` is None until there are twice RECENT decisions."""

    windows: tuple[TrendWindow, ...]
    brier: TrendSlope
    bias: TrendSlope
    drift: CalibrationDrift | None


def compute_trend(decisions: Sequence[ReviewedDecision], pairs: ForecastSeries) -> CalibrationTrend | None:
    """The trend of these decisions, which must be in order of time; None below two windows."""
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
    """The straight line through values in order of time. Its interval allows for a spread that changes (White's)."""
    time = np.arange(len(values)) / 100
    time -= time.mean()
    spread = float(time @ time)
    steep = float(time @ values) / spread
    left = values - values.mean() - steep * time
    reach = Z95 * sqrt(float(time**2 @ left**2)) / spread
    return TrendSlope(per_100=steep, interval=(steep - reach, steep + reach))


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
    recent, before = pairs.select(slice(-RECENT_COUNT, None)), pairs.select(slice(None, -RECENT_COUNT))
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
    """Whether the mean rises by more than `least`, and by more than chance explains (95 %)."""
    rise = float(recent.mean() - before.mean())
    return rise > min_rise and rise > Z95 * sqrt(recent.var() / len(recent) + before.var() / len(before))
