"""Endpoints for liveness, readiness and Prometheus metrics."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.prometheus import PrometheusMetrics

router = APIRouter(tags=["health"])


class HealthResponse(BaseModel):
    status: str


@router.get("/health/live")
async def get_liveness() -> HealthResponse:
    """Return 200 while the process runs."""
    return HealthResponse(status="live")


@router.get("/health/ready", responses={503: {"model": HealthResponse}})
async def get_readiness(request: Request) -> JSONResponse:
    """Return 200 while the database answers and can store data, and 503 otherwise, as on a full disk."""
    is_ready = await request.app.state.agents.is_ready()
    return JSONResponse({"status": "ready" if is_ready else "not ready"}, 200 if is_ready else 503)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def get_metrics(request: Request, caller: ReadAccess) -> Response:
    """Return request metrics, and the quality metrics of each loaded agent. Needs the operator's token."""
    caller.require_operator("Only the operator's token can read the metrics, because they cover all agents.")
    metrics: PrometheusMetrics = request.app.state.metrics
    return Response(await metrics.render(), media_type=CONTENT_TYPE_LATEST)
