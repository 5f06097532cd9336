"""The FastAPI application: routes and middleware."""

from collections.abc import Set
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from newton import __version__
from newton.client.connection import LOOPBACK_HOSTS
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api import problems
from newton.runtime.api.event_broadcaster import EventBroadcaster
from newton.runtime.api.middleware.admission import AdmissionMiddleware, FairLimiter
from newton.runtime.api.middleware.request_limits import BodyMiddleware, OriginCheckMiddleware
from newton.runtime.api.middleware.request_log import RequestLogMiddleware
from newton.runtime.api.prometheus import PrometheusMetrics
from newton.runtime.api.routes import (
    agents,
    bundles,
    calibration,
    context,
    decisions,
    events,
    exports,
    frames,
    guardrails,
    health,
    identity,
    imports,
    jobs,
    memories,
    metrics,
    openai,
    recall,
    sessions,
    tasks,
    turns,
)

ROUTERS = (
    health.router,
    metrics.router,
    agents.router,
    context.router,
    bundles.router,
    memories.router,
    recall.router,
    turns.router,
    sessions.router,
    identity.router,
    tasks.router,
    decisions.router,
    guardrails.router,
    calibration.router,
    frames.router,
    imports.router,
    exports.router,
    jobs.router,
    events.router,
    openai.router,
)


def create_app(registry: AgentRegistry, *, operator_token: str, hosts: Set[str] = LOOPBACK_HOSTS) -> FastAPI:
    """Create the API for the agents of one process; `hosts` are the accepted host names."""
    app = FastAPI(
        title="Newton",
        version=__version__,
        summary="A mind your agent can keep.",
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": problems.ProblemDetails, "description": "A problem document with a hint."}},
        generate_unique_id_function=_operation_id,
    )
    app.state.agents = registry
    app.state.operator_token = operator_token
    app.state.broadcaster = EventBroadcaster()
    app.state.running_turns = set()  # the daemon waits for them on shutdown
    app.state.metrics = PrometheusMetrics(registry)
    problems.install_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    _add_middleware(app, hosts)
    return app


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with problem documents as the default response."""
    schema = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "openai" not in operation["tags"] and "application/json" in content:  # OpenAI has its own error shape
                content[problems.PROBLEM_MEDIA_TYPE] = content.pop("application/json")
    return schema


def _add_middleware(app: FastAPI, hosts: Set[str]) -> None:
    """Add the middleware; the last one added is the outermost."""
    app.add_middleware(AdmissionMiddleware, limiter=FairLimiter())
    app.add_middleware(BodyMiddleware)
    app.add_middleware(OriginCheckMiddleware, hosts=hosts)
    app.add_middleware(RequestLogMiddleware, metrics=app.state.metrics)
    app.openapi = lambda: build_openapi(app)


def _operation_id(route: APIRoute) -> str:
    """Return the operationId: the name of the function."""
    return route.name
