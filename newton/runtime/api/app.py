"""The application: its routes, who may call them, and what every answer has in common."""

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
from newton.runtime.api.routes import (
    agents,
    bundles,
    context,
    decisions,
    events,
    exports,
    guardrails,
    health,
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
from newton.runtime.api.routes.metrics import PrometheusMetrics

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
    tasks.router,
    decisions.router,
    guardrails.router,
    guardrails.frames_router,
    imports.router,
    exports.router,
    jobs.router,
    events.router,
    openai.router,
)


def create_app(registry: AgentRegistry, *, operator_token: str, hosts: Set[str] = LOOPBACK_HOSTS) -> FastAPI:
    """The whole API, for the agents of one process, under these names."""
    app = FastAPI(
        title="Newton",
        version=__version__,
        summary="A mind your agent can keep.",
        docs_url=None,
        redoc_url=None,
        responses={
            "default": {"model": problems.ProblemDetails, "description": "A problem, with what to do about it."}
        },
        generate_unique_id_function=_operation_id,
    )
    app.state.agents = registry
    app.state.operator_token = operator_token
    app.state.broadcaster = EventBroadcaster()
    app.state.running_turns = set()  # turns that are still to be ended when nobody reads them any more
    app.state.metrics = PrometheusMetrics(registry)
    problems.install_error_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    _add_middleware(app, hosts)
    return app


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """The API as OpenAPI; that failures are problem documents is said of each endpoint."""
    schema = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "openai" not in operation["tags"] and "application/json" in content:  # its clients read another shape
                content[problems.PROBLEM_MEDIA_TYPE] = content.pop("application/json")
    return schema


def _add_middleware(app: FastAPI, hosts: Set[str]) -> None:
    """What a request passes on its way in; the last one that is added is the first it meets."""
    app.add_middleware(AdmissionMiddleware, limiter=FairLimiter())
    app.add_middleware(BodyMiddleware)
    app.add_middleware(OriginCheckMiddleware, hosts=hosts)
    app.add_middleware(RequestLogMiddleware, metrics=app.state.metrics)
    app.openapi = lambda: build_openapi(app)


def _operation_id(route: APIRoute) -> str:
    """The name of an endpoint in clients that are made from the description."""
    return f"{route.tags[0]}_{route.name.rstrip('_')}"
