"""The endpoint of the report on the quality of contexts."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.agent.inputs import MetricsInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.hint_names import rename_advice
from newton.runtime.reports.metrics import metrics_to_json

router = APIRouter(prefix="/v1", tags=["reports"])


@router.get("/metrics")
async def get_quality_metrics(caller: ReadAccess, query: Annotated[MetricsInput, Query()]) -> dict[str, Any]:
    """Return the quality metrics of the contexts with their targets: relevance, budget, refreshes, use, speed."""
    report = await caller.newton.metrics().report(query.days)
    return rename_advice(metrics_to_json(report), "http")
