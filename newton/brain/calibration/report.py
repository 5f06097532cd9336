"""The calibration report of an agent's reviewed decisions: filters, the trend over time, and drift. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import sqrt
from typing import Any, Literal

import numpy as np
from pydantic import SerializerFunctionWrapHandler, computed_field, model_serializer, model_validator

from newton.brain.calibration.recalibration import RecalibrationResult, recalibrate
from newton.brain.calibration.scores import (
    MIN_REVIEWS_FOR_BIAS,
    Z95,
    CalibrationScores,
    ConfidenceBias,
    FloatArray,
    ForecastSeries,
    IndexArray,
    compute_bias,
    compute_scores,
    sort_by_time,
    to_series,
)
from newton.brain.drafts import ReviewedDecision
from newton.errors import InputError


def filter_decisions(
    decisions: Sequence[ReviewedDecision], *, category: str | None, since: datetime | None
) -> list[ReviewedDecision]:
    """Return the decisions of a category that were made at `since` or later; None for a filter selects all.

    Raises InputError for a category that no decision has.
    """
    categories = sorted({one.category for one in decisions})
    if category is not None and category not in categories:
        hint = f"Known categories: {', '.join(categories) or 'none'}."
        raise InputError(f"No reviewed decision has the category {category!r}.", hint=hint)
    return [
        one
        for one in decisions
        if (category is None or one.category == category) and (since is None or one.decided_at >= since)
    ]


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
    """The change of a score per 100 decisions (`per_100`) with its 95 % interval, from a least-squares line."""

    per_100: float
    interval95: tuple[float, float]

    @computed_field
    @property
    def direction(self) -> Direction:
        """ "rising" or "falling" if 0 is outside the interval, otherwise "no clear change"."""
        lower, upper = self.interval95
        if lower > ROUNDING_TOLERANCE:
            return "rising"
        return "falling" if upper < -ROUNDING_TOLERANCE else "no clear change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationDrift:
    """The scores of the latest decisions and of all earlier ones, to see whether the agent has become worse.

    `reasons` is empty if it has not.
    """

    recent_brier: float
    earlier_brier: float
    recent_accuracy: float
    earlier_accuracy: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTrend:
    """The calibration over time: scores of each window of decisions, the slopes of Brier score and bias, and the drift.

    `drift` (whether the latest decisions are worse than all others) is None with too few decisions.
    """

    windows: tuple[TrendWindow, ...]
    brier: TrendSlope
    bias: TrendSlope
    drift: CalibrationDrift | None


def compute_trend(decisions: Sequence[ReviewedDecision], pairs: ForecastSeries) -> CalibrationTrend | None:
    """Return the trend of decisions in time order; None if they do not fill two windows.

    `pairs` are the confidences and outcomes of the same decisions.
    """
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
    """Return the scores of the last RECENT_COUNT decisions and of all before; None with too few decisions."""
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


UNNAMED = "(none)"
NOTHING_REVIEWED: Mapping[str, object] = {"n": 0, "partials": 0, "says": "nothing judged", "bins": []}

GroupDimension = Literal["category", "stakes", "frame", "reason"]

_NAMES: Mapping[GroupDimension, Callable[[ReviewedDecision], Iterable[str]]] = {
    "category": lambda one: (one.category,),
    "stakes": lambda one: (one.stakes,),
    "frame": lambda one: (one.frame or UNNAMED,),
    "reason": lambda one: set(one.reason_kinds) or (UNNAMED,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationGroup:
    """The calibration of a group of decisions, such as those of one category.

    A small group has no bias interval and no verdict.
    """

    name: str
    n: int
    base_rate: float
    brier: float
    bias: ConfidenceBias


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """The calibration of reviewed decisions. `scores` and `bias` are None if no decision is reviewed.

    `without_partials` are the scores without the decisions whose outcome is partial, None if there are no such
    decisions. In the groups by reason, a decision counts once for each kind of reason that it has. In JSON, `scores`
    are at the top level.
    """

    scores: CalibrationScores | None
    without_partials: CalibrationScores | None
    bias: ConfidenceBias | None
    trend: CalibrationTrend | None
    groups: Mapping[GroupDimension, tuple[CalibrationGroup, ...]]
    recalibration: RecalibrationResult | None

    @property
    def n(self) -> int:
        return self.scores.n if self.scores else 0

    @model_serializer(mode="wrap")
    def _flatten(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = serialize(self)
        return {**(fields.pop("scores") or NOTHING_REVIEWED), **fields}

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "scores": fields if fields["n"] else None}


def build_calibration(decisions: Iterable[ReviewedDecision]) -> CalibrationReport:
    """Return the calibration report of decisions in any order. Raises InputError for a confidence outside [0, 1]."""
    ordered = sort_by_time(decisions)
    pairs = to_series(ordered)
    whole = np.flatnonzero(pairs.outcome != 0.5)
    return CalibrationReport(
        scores=compute_scores(pairs),
        without_partials=compute_scores(pairs.select(whole)) if len(whole) < len(pairs) else None,
        bias=compute_bias(pairs),
        trend=compute_trend(ordered, pairs),
        groups={dimension: _build_groups(ordered, pairs, names) for dimension, names in _NAMES.items()},
        recalibration=recalibrate(pairs),
    )


def _build_groups(
    decisions: Sequence[ReviewedDecision], pairs: ForecastSeries, names: Callable[[ReviewedDecision], Iterable[str]]
) -> tuple[CalibrationGroup, ...]:
    members: dict[str, list[int]] = {}
    for index, decision in enumerate(decisions):
        for name in names(decision):
            members.setdefault(name, []).append(index)
    groups = [_build_group(name, pairs.select(np.array(own, dtype=np.intp))) for name, own in members.items()]
    return tuple(sorted(groups, key=lambda group: (-group.n, group.name)))


def _build_group(name: str, pairs: ForecastSeries) -> CalibrationGroup:
    own = compute_bias(pairs)
    assert own is not None  # every group has a decision
    brier = float(pairs.squared_errors.mean())
    return CalibrationGroup(name=name, n=len(pairs), base_rate=own.mean_outcome, brier=brier, bias=own)


MAX_NOTE_TOKENS = 100
NOTE_WINDOW = 100  # decisions; the note covers the latest only, because agents change


def write_note(
    decisions: Iterable[ReviewedDecision], *, count: Callable[[str], int], max_tokens: int = MAX_NOTE_TOKENS
) -> str | None:
    """Return a text of at most `max_tokens` on the calibration of the latest decisions; None with too few reviews.

    `count` returns the number of tokens of a text.
    """
    pairs = to_series(sort_by_time(decisions)[-NOTE_WINDOW:])
    own = compute_bias(pairs)
    if own is None or len(pairs) < MIN_REVIEWS_FOR_BIAS:
        return None
    note = ""
    for sentence in _sentences(pairs, own):
        longer = f"{note} {sentence}".strip()
        if count(longer) > max_tokens:
            break
        note = longer
    return note or None


def _sentences(pairs: ForecastSeries, own: ConfidenceBias) -> Sequence[str]:
    stated, accuracy = f"{100 * own.mean_stated:.0f} %", f"{100 * own.mean_outcome:.0f} %"
    scores = [f"Recent accuracy {accuracy}.", f"Brier {float(pairs.squared_errors.mean()):.3f}."]
    if own.verdict == "no sign of either":
        return [*scores, "No sign of over- or underconfidence."]
    degree = "Slightly" if abs(own.size) < 0.1 else "Clearly" if abs(own.size) < 0.2 else "Strongly"
    advice = "state less" if own.verdict == "overconfident" else "trust your analysis more"
    return [*scores, f"{degree} {own.verdict}: stated {stated} on average, {accuracy} came true; {advice}."]
