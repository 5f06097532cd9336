"""Route of the Prometheus metrics."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.prometheus import PrometheusMetrics

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(request: Request, caller: ReadAccess) -> Response:
    """Return request metrics and the quality metrics of each loaded agent. Needs the operator's token."""
    caller.require_operator("The metrics cover all agents.")
    metrics: PrometheusMetrics = request.app.state.metrics
    return Response(await metrics.render(), media_type=CONTENT_TYPE_LATEST)
