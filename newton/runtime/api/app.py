"""The application: its routes, who may call them, and what every answer has in common."""

from collections.abc import Set
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from newton import __version__
from newton.client.connection import LOOPBACK_HOSTS
from newton.runtime.api import (
    agents,
    bundles,
    contexts,
    decisions,
    export,
    health,
    importing,
    jobs,
    judging,
    listening,
    memories,
    metrics,
    openai,
    problems,
    recalling,
    sessions,
    talking,
    tasks,
)
from newton.runtime.api.board import EventBroadcaster
from newton.runtime.api.bodies import OriginCheckMiddleware, BodyMiddleware
from newton.runtime.api.metrics import PrometheusMetrics
from newton.runtime.api.observed import RequestLogMiddleware
from newton.runtime.api.turns import AdmissionMiddleware, FairLimiter
from newton.runtime.minds import AgentRegistry

ROUTERS = (
    health.router,
    metrics.router,
    agents.router,
    contexts.router,
    bundles.router,
    memories.router,
    recalling.router,
    talking.router,
    sessions.router,
    tasks.router,
    decisions.router,
    judging.router,
    judging.frames_router,
    importing.router,
    export.router,
    jobs.router,
    listening.router,
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
        responses={"default": {"model": problems.ProblemDetails, "description": "A problem, with what to do about it."}},
        generate_unique_id_function=_operation_id,
    )
    app.state.minds = registry
    app.state.operator_token = operator_token
    app.state.board = EventBroadcaster()
    app.state.taking = set()  # turns that are still to be ended when nobody reads them any more
    app.state.meters = PrometheusMetrics(registry)
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
    app.add_middleware(AdmissionMiddleware, slots=FairLimiter())
    app.add_middleware(BodyMiddleware)
    app.add_middleware(OriginCheckMiddleware, hosts=hosts)
    app.add_middleware(RequestLogMiddleware, meters=app.state.meters)
    app.openapi = lambda: build_openapi(app)


def _operation_id(route: APIRoute) -> str:
    """The name of an endpoint in clients that are made from the description."""
    return f"{route.tags[0]}_{route.name.rstrip('_')}"
