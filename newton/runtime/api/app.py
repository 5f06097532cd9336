"""The application: its routes, who may call them, and what every answer has in common."""

from collections.abc import Set
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from newton import __version__
from newton.client.connection import LOOPBACK
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
from newton.runtime.api.board import Board
from newton.runtime.api.bodies import Addressed, Read
from newton.runtime.api.metrics import Meters
from newton.runtime.api.observed import Observed
from newton.runtime.api.turns import Paced, Slots
from newton.runtime.minds import Minds

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


def create(minds: Minds, *, operator_token: str, hosts: Set[str] = LOOPBACK) -> FastAPI:
    """The whole API, for the agents of one process, under these names."""
    app = FastAPI(
        title="Newton",
        version=__version__,
        summary="A mind your agent can keep.",
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": problems.Problem, "description": "A problem, with what to do about it."}},
        generate_unique_id_function=_operation,
    )
    app.state.minds = minds
    app.state.operator_token = operator_token
    app.state.board = Board()
    app.state.taking = set()  # turns that are still to be ended when nobody reads them any more
    app.state.meters = Meters(minds)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    _surround(app, hosts)
    return app


def described(app: FastAPI) -> dict[str, Any]:
    """The API as OpenAPI; that failures are problem documents is said of each endpoint."""
    schema = FastAPI.openapi(app)
    for path in schema["paths"].values():
        for operation in path.values():
            content = operation["responses"]["default"]["content"]
            if "openai" not in operation["tags"] and "application/json" in content:  # its clients read another shape
                content[problems.MEDIA] = content.pop("application/json")
    return schema


def _surround(app: FastAPI, hosts: Set[str]) -> None:
    """What a request passes on its way in; the last one that is added is the first it meets."""
    app.add_middleware(Paced, slots=Slots())
    app.add_middleware(Read)
    app.add_middleware(Addressed, hosts=hosts)
    app.add_middleware(Observed, meters=app.state.meters)
    app.openapi = lambda: described(app)


def _operation(route: APIRoute) -> str:
    """The name of an endpoint in clients that are made from the description."""
    return f"{route.tags[0]}_{route.name.rstrip('_')}"
