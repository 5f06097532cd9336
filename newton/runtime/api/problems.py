"""Failures as RFC 9457 problem documents: what is wrong and what to do."""

import traceback
from pathlib import Path

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from newton.errors import InputError, NewtonError, NotFoundError
from newton.runtime.api.observed import REQUEST_ID, sign
from newton.runtime.statuses import status_of

MEDIA = "application/problem+json"
LATER_SECONDS = 2

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


class Problem(BaseModel):
    """A failure as every endpoint answers it."""

    type: str = Field(examples=["urn:newton:not_found"])
    title: str
    status: int
    detail: str = Field(description="What is wrong.")
    hint: str = Field(description="What to do about it.")


def answer(error: NewtonError) -> JSONResponse:
    """The problem document of a failure."""
    status = status_of(error.code)
    problem = Problem(
        type=f"urn:newton:{error.code}", title=status.title, status=status.http, detail=error.what, hint=error.hint
    )
    headers = {"Retry-After": str(LATER_SECONDS)} if status.later else {}
    if status.http == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="newton"'
    return JSONResponse(problem.model_dump(), status.http, headers=headers, media_type=MEDIA)


def unforeseen(error: Exception) -> NewtonError:
    """What is told of a failure that nobody named; the log says where it was."""
    trace = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in trace]
    log.error("request_failed", error=type(error).__name__, at=places)  # its message may quote what somebody said
    return NewtonError("Newton has failed at this.", hint="Its log says where; please report it.")


def install(app: FastAPI) -> None:
    """Every failure of an endpoint is answered as a problem."""

    @app.exception_handler(NewtonError)
    async def named(request: Request, error: NewtonError) -> JSONResponse:
        return answer(error)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        told = answer(unforeseen(error))
        sign(told.headers, getattr(request.state, REQUEST_ID))  # it is answered outside of what signs the others
        return told

    @app.exception_handler(RequestValidationError)
    async def unread(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return answer(InputError(f"{place}: {first['msg']}.", hint="`/openapi.json` says what the endpoint takes."))

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 404:
            lost = NotFoundError(f"There is nothing at {request.url.path}.", hint="`/openapi.json` lists what is.")
            return answer(lost)
        problem = Problem(
            type="about:blank",
            title=error.detail,
            status=error.status_code,
            detail=error.detail,
            hint="See /openapi.json.",
        )
        return JSONResponse(problem.model_dump(), error.status_code, headers=error.headers, media_type=MEDIA)
