"""The application: its routes, who may call them, and what every answer has in common."""

from fastapi import FastAPI

from newton import __version__
from newton.runtime.api import health, memories, openai, problems
from newton.runtime.minds import Minds


def create(minds: Minds, *, operator_token: str) -> FastAPI:
    """The whole API, for the agents of one process."""
    app = FastAPI(
        title="Newton",
        version=__version__,
        summary="A mind your agent can keep.",
        docs_url=None,
        redoc_url=None,
        responses={"default": {"model": problems.Problem, "description": "A problem, with what to do about it."}},
    )
    app.state.minds = minds
    app.state.operator_token = operator_token
    problems.install(app)
    for routes in (health, memories, openai):
        app.include_router(routes.router)
    return app
