"""Judged decisions as tests need them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import strategies as st
from pydantic import TypeAdapter

from newton.brain.calibration.report import CalibrationReport
from newton.brain.calibration.scores import FloatArray, ForecastSeries
from newton.brain.drafts import ReasonKind, ReviewedDecision, Verdict
from tests.support import NOON

NUMBERED: tuple[Verdict, ...] = ("failure", "partial", "success")
CONFIDENCES = st.floats(0, 1)
PAIRS = st.tuples(CONFIDENCES, st.sampled_from(NUMBERED))


def judged(
    place: int,
    confidence: float,
    outcome: Verdict,
    *,
    category: str = "process",
    reasons: tuple[ReasonKind, ...] = ("analysis",),
) -> ReviewedDecision:
    """The decision of an hour: a later place was decided later."""
    at = NOON + timedelta(hours=place)
    return ReviewedDecision(
        decision_id=UUID(int=place),
        decided_at=at,
        reviewed_at=at + timedelta(days=3),
        confidence=confidence,
        outcome=outcome,
        category=category,
        stakes="medium",
        frame=None,
        reason_kinds=reasons,
    )


def said(confidence: float, outcome: Verdict, times: int) -> list[tuple[float, Verdict]]:
    """The same confidence with the same outcome, so many times."""
    return [(confidence, outcome)] * times


def record(pairs: Sequence[tuple[float, Verdict]]) -> list[ReviewedDecision]:
    return [judged(place, confidence, outcome) for place, (confidence, outcome) in enumerate(pairs)]


def drawn(rng: np.random.Generator, stated: FloatArray, true: FloatArray) -> ForecastSeries:
    """Outcomes that come true with the chance `true`, whatever was stated."""
    return ForecastSeries(stated, (rng.random(len(stated)) < true).astype(np.float64))


def as_record(pairs: ForecastSeries) -> list[ReviewedDecision]:
    names: dict[float, Verdict] = {0.0: "failure", 0.5: "partial", 1.0: "success"}
    return record([(p, names[y]) for p, y in zip(pairs.stated.tolist(), pairs.outcome.tolist(), strict=True)])


def to_json(report: CalibrationReport) -> dict[str, Any]:
    """The report as every interface returns it."""
    return TypeAdapter(CalibrationReport).dump_python(report, mode="json")
