"""Endpoints of reports on calibration and on the quality of contexts."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from newton.agent.inputs import MetricsInput
from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.hint_names import rename_advice
from newton.runtime.reports import html_page, metrics_page
from newton.runtime.reports import relevance as relevance_report
from newton.runtime.reports.metrics import metrics_to_json

router = APIRouter(prefix="/v1", tags=["reports"])


PAGE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report as JSON, or as an HTML page if the request accepts `text/html`.",
        "content": {"text/html": {"schema": {"type": "string"}}},
    }
}


@router.get("/calibration", response_model=None, responses=PAGE_RESPONSES)
async def get_calibration(
    request: Request,
    caller: ReadAccess,
    category: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[datetime | None, Query(description="Include only decisions made at or after this time.")] = None,
) -> dict[str, Any] | HTMLResponse:
    """Return how well the stated confidences of decisions match their outcomes: Brier score, reliability, bias, trend.

    Null stands for a score with too few decisions.
    """
    reviewed = await caller.newton.decisions(ORIGIN).list_reviewed_decisions()
    start = since.replace(tzinfo=since.tzinfo or UTC) if since else None
    report = build_calibration(filter_decisions(reviewed, category=category, since=start))
    if _wants_page(request):
        return HTMLResponse(html_page.render_calibration(report, agent=caller.newton.settings.agent))
    return to_json(report)


@router.get("/calibration/relevance", response_model=None, responses=PAGE_RESPONSES)
async def get_relevance_calibration(request: Request, caller: ReadAccess) -> dict[str, Any] | HTMLResponse:
    """Return how well the probability that a memory answers a question agrees with which memories replies used.

    `shipped` has the scores of the shipped model, `corrected` those of the agent's own correction, null without one.
    """
    report = await caller.newton.relevance_fitter().report()
    if _wants_page(request):
        title = f"Relevance of {caller.newton.settings.agent}"
        return HTMLResponse(html_page.render_document(title, relevance_report.render_sections(report)))
    return relevance_report.report_to_json(report)


@router.get("/metrics", response_model=None, responses=PAGE_RESPONSES)
async def get_quality_metrics(
    request: Request, caller: ReadAccess, query: Annotated[MetricsInput, Query()]
) -> dict[str, Any] | HTMLResponse:
    """Return the quality metrics of the contexts with their targets: relevance, budget, refreshes, use, speed."""
    report = await caller.newton.metrics().report(query.days)
    if _wants_page(request):
        return HTMLResponse(metrics_page.render_html(report, agent=caller.newton.settings.agent))
    return rename_advice(metrics_to_json(report), "http")


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")
