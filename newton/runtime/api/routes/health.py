"""Routes of liveness and readiness."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

router = APIRouter(prefix="/health", tags=["health"])


class HealthResponse(BaseModel):
    status: str


@router.get("/live")
async def get_liveness() -> HealthResponse:
    """Return 200 while the process runs."""
    return HealthResponse(status="live")


@router.get("/ready", responses={503: {"model": HealthResponse}})
async def get_readiness(request: Request) -> JSONResponse:
    """Return 200 while the database answers and the daemon is not shutting down."""
    up = await request.app.state.agents.is_ready()
    return JSONResponse({"status": "ready" if up else "not ready"}, 200 if up else 503)
