"""Endpoints of reports on calibration and on the quality of contexts."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.agent.inputs import MetricsInput
from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.hint_names import rename_advice
from newton.runtime.reports import relevance as relevance_report
from newton.runtime.reports.metrics import metrics_to_json

router = APIRouter(prefix="/v1", tags=["reports"])


@router.get("/calibration")
async def get_calibration(
    caller: ReadAccess,
    category: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[datetime | None, Query(description="Include only decisions made at or after this time.")] = None,
) -> dict[str, Any]:
    """Return how well the stated confidences of decisions match their outcomes: Brier score, reliability, bias, trend.

    Null stands for a score with too few decisions.
    """
    reviewed = await caller.newton.decisions(ORIGIN).list_reviewed_decisions()
    start = since.replace(tzinfo=since.tzinfo or UTC) if since else None
    report = build_calibration(filter_decisions(reviewed, category=category, since=start))
    return to_json(report)


@router.get("/calibration/relevance")
async def get_relevance_calibration(caller: ReadAccess) -> dict[str, Any]:
    """Return how well the probability that a memory answers a question agrees with which memories replies used.

    `shipped` has the scores of the shipped model, `corrected` those of the agent's own correction, null without one.
    """
    report = await caller.newton.relevance_fitter().report()
    return relevance_report.report_to_json(report)


@router.get("/metrics")
async def get_quality_metrics(caller: ReadAccess, query: Annotated[MetricsInput, Query()]) -> dict[str, Any]:
    """Return the quality metrics of the contexts with their targets: relevance, budget, refreshes, use, speed."""
    report = await caller.newton.metrics().report(query.days)
    return rename_advice(metrics_to_json(report), "http")
