"""The calibration report of an agent's reviewed decisions. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from newton.brain.calibration.bias import ConfidenceBias, compute_bias
from newton.brain.calibration.recalibration import RecalibrationResult, recalibrate
from newton.brain.calibration.scores import CalibrationScores, compute_scores
from newton.brain.calibration.series import ForecastSeries, sort_by_time, to_series
from newton.brain.calibration.trend import CalibrationTrend, compute_trend
from newton.brain.draft import ReviewedDecision

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
    """The calibration of reviewed decisions. `scores` and `bias` are None without reviews.

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
