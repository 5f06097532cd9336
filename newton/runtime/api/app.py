"""The FastAPI application with its routes, middleware and OpenAPI description."""

import asyncio
from collections.abc import Set
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any

from fastapi import APIRouter, FastAPI

from newton import __version__
from newton.client.environment import LOOPBACK_HOSTS
from newton.concurrency import with_timeout
from newton.runtime.access.browser_sessions import BrowserSessions
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api import problems
from newton.runtime.api.middleware.admission import AdmissionMiddleware, FairLimiter, KnownCallers
from newton.runtime.api.middleware.request_limits import BodyMiddleware, HeaderCheckMiddleware
from newton.runtime.api.middleware.request_log import RequestLogMiddleware
from newton.runtime.api.operation_routes import build_operation_router
from newton.runtime.api.prometheus import PrometheusMetrics
from newton.runtime.api.routes import (
    agents,
    daemon,
    dashboard,
    events,
    health,
    jobs,
    sessions,
    transfer,
    turns,
)
from newton.runtime.api.routes.events import EventBroadcaster
from newton.runtime.api.routes.inventory import (
    documents,
    erasures,
    tokens,
)
from newton.runtime.api.routes.openai import chat_completions, embeddings, models, responses
from newton.runtime.daemon_state import DaemonState

ROUTE_MODULES = (
    *(health, agents, tokens, documents),
    *(erasures, turns, sessions),
    *(transfer, jobs, events, dashboard),
    *(daemon, models, chat_completions, responses, embeddings),
)


def create_app(
    registry: AgentRegistry, *, operator_token: str, hosts: Set[str] = LOOPBACK_HOSTS, state: DaemonState | None = None
) -> FastAPI:
    """Create the HTTP API for the agents in `registry`. `operator_token` is valid for every agent.

    Requests whose `Host` header is not in `hosts` are rejected. `state` has the settings with which the daemon started.
    """
    app = FastAPI(
        title="Newton",
        version=__version__,
        summary="Memory, context and decisions for AI agents.",
        docs_url=None,
        redoc_url=None,
        routes=_build_router().routes,
    )
    app.state.agents = registry
    app.state.operator_token = operator_token
    app.state.daemon_state = state
    app.state.browser_sessions = BrowserSessions()
    app.state.broadcaster = EventBroadcaster()
    app.state.running_turns = set()  # the streams that the daemon ends, and waits for, on shutdown
    app.state.metrics = PrometheusMetrics(registry)
    problems.install_error_handlers(app)
    callers = app.state.callers = KnownCallers(operator_token)
    app.add_middleware(AdmissionMiddleware, limiter=FairLimiter(), callers=callers)  # the last added is the outermost
    app.add_middleware(BodyMiddleware, callers=callers)
    app.add_middleware(HeaderCheckMiddleware, hosts=hosts)
    app.add_middleware(RequestLogMiddleware, metrics=app.state.metrics)
    app.openapi = lambda: build_openapi(app)
    return app


def stop_turns(app: FastAPI) -> None:
    """End all running turns (messages being answered) with an error for their clients, because the daemon stops."""
    for turn in tuple(app.state.running_turns):
        turn.stop()


async def wait_for_turns(app: FastAPI, *, seconds: float) -> None:
    """Wait until all running turns (messages being answered) have stored their replies, but at most `seconds`."""
    with suppress(TimeoutError):
        await with_timeout(asyncio.gather(*(turn.wait() for turn in app.state.running_turns)), seconds=seconds)


@cache
def _build_router() -> APIRouter:
    """Return the routes. They are built once per process, because FastAPI takes 0.4 s to analyze their parameters."""
    router = APIRouter(
        responses={
            "default": {
                "model": problems.ProblemDetails,
                "description": "An error: a problem document with a hint how to resolve it.",
            }
        },
        generate_unique_id_function=attrgetter("name"),  # the operationId is the name of the function
    )
    for module in ROUTE_MODULES:
        router.include_router(module.router)
    router.include_router(build_operation_router())
    return router


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, in which the default response of each endpoint is a problem document."""
    schema = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "openai" not in operation["tags"] and "application/json" in content:  # OpenAI has its own error shape
                content[problems.PROBLEM_MEDIA_TYPE] = content.pop("application/json")
    return schema
