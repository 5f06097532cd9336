"""How the judgement changes from decision to decision, and whether the latest are worse. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Literal

import numpy as np

from newton.brain.calibration.scores import Z95
from newton.brain.calibration.series import Floats, Places, Series
from newton.brain.choice import Judged

# A Brier score of fewer decisions says more about chance than about judgement.
WINDOW = 20
MOST_WINDOWS = 12
RECENT = 50
BRIER_RISE = 0.02
ACCURACY_FALL = 0.15
NOTHING = 1e-9  # rounding: what never changes has no slope

Direction = Literal["rising", "falling", "no clear change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Neighbours in time. `start` and `end` are when the first and the last of them was decided."""

    start: datetime
    end: datetime
    n: int
    base_rate: float
    brier: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The change over 100 decisions, with its 95 % interval: least squares over single decisions."""

    per_100: float
    interval: tuple[float, float]

    @property
    def direction(self) -> Direction:
        lower, upper = self.interval
        if lower > NOTHING:
            return "rising"
        return "falling" if upper < -NOTHING else "no clear change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The last RECENT decisions beside all before them. `reasons` is empty when there is no drift."""

    recent_brier: float
    earlier_brier: float
    recent_accuracy: float
    earlier_accuracy: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """`drift` is None until there are twice RECENT decisions."""

    windows: tuple[Window, ...]
    brier: Slope
    bias: Slope
    drift: Drift | None


def trend(judged: Sequence[Judged], pairs: Series) -> Trend | None:
    """The trend of these decisions, which must be in order of time; None below two windows."""
    if len(pairs) < 2 * WINDOW:
        return None
    count = min(MOST_WINDOWS, len(pairs) // WINDOW)
    parts: list[Places] = np.array_split(np.arange(len(pairs)), count)
    return Trend(
        windows=tuple(_window(judged, pairs, part) for part in parts),
        brier=slope(pairs.squared),
        bias=slope(pairs.gap),
        drift=_drift(pairs),
    )


def slope(values: Floats) -> Slope:
    """The straight line through values in order of time. Its interval allows for a spread that changes (White's)."""
    time = np.arange(len(values)) / 100
    time -= time.mean()
    spread = float(time @ time)
    steep = float(time @ values) / spread
    left = values - values.mean() - steep * time
    reach = Z95 * sqrt(float(time**2 @ left**2)) / spread
    return Slope(per_100=steep, interval=(steep - reach, steep + reach))


def _window(judged: Sequence[Judged], pairs: Series, part: Places) -> Window:
    own = pairs.at(part)
    return Window(
        start=judged[int(part[0])].decided_at,
        end=judged[int(part[-1])].decided_at,
        n=len(own),
        base_rate=float(own.outcome.mean()),
        brier=float(own.squared.mean()),
        bias=float(own.gap.mean()),
    )


def _drift(pairs: Series) -> Drift | None:
    if len(pairs) < 2 * RECENT:
        return None
    recent, before = pairs.at(slice(-RECENT, None)), pairs.at(slice(None, -RECENT))
    reasons: list[str] = []
    if _beyond(recent.squared, before.squared, least=BRIER_RISE):
        reasons.append("Brier score rises")
    if _beyond(-recent.outcome, -before.outcome, least=ACCURACY_FALL):
        reasons.append("accuracy falls")
    return Drift(
        recent_brier=float(recent.squared.mean()),
        earlier_brier=float(before.squared.mean()),
        recent_accuracy=float(recent.outcome.mean()),
        earlier_accuracy=float(before.outcome.mean()),
        reasons=tuple(reasons),
    )


def _beyond(recent: Floats, before: Floats, *, least: float) -> bool:
    """Whether the mean rises by more than `least`, and by more than chance explains (95 %)."""
    rise = float(recent.mean() - before.mean())
    return rise > least and rise > Z95 * sqrt(recent.var() / len(recent) + before.var() / len(before))
