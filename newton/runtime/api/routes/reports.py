"""Endpoints of reports on calibration, on the quality of contexts, and on growth."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.agent.growth.rules import assess
from newton.agent.inputs import GrowthInput, MetricsInput
from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.hint_names import rename_advice
from newton.runtime.reports import relevance as relevance_report
from newton.runtime.reports.growth import report_to_json
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
    return to_json(build_calibration(filter_decisions(reviewed, category=category, since=start)))


@router.get("/calibration/relevance")
async def get_relevance_calibration(caller: ReadAccess) -> dict[str, Any]:
    """Return how well the probability that a memory answers a question agrees with which memories replies used.

    `shipped` has the scores of the shipped model, `corrected` those of the agent's own correction, null without one.
    """
    return relevance_report.report_to_json(await caller.newton.relevance_fitter().report())


@router.get("/metrics")
async def get_quality_metrics(caller: ReadAccess, query: Annotated[MetricsInput, Query()]) -> dict[str, Any]:
    """Return the quality metrics of the contexts with their targets: relevance, budget, refreshes, use, speed."""
    return rename_advice(metrics_to_json(await caller.newton.metrics().report(query.days)), "http")


@router.get("/growth")
async def get_growth(caller: ReadAccess, query: Annotated[GrowthInput, Query()]) -> dict[str, Any]:
    """Return how decisions, censors, procedures and facts developed, compared with the period before."""
    report = await caller.newton.growth().report_weeks(query.weeks)
    return rename_advice(report_to_json(report, assess(report)), "http")
