"""Conversion of errors to RFC 9457 problem documents, to OpenAI's error format, or to JSON-RPC for MCP."""

import re
import traceback
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from newton.content.validation_messages import describe_problem, select_problem, suggest_field
from newton.errors import InputError, NewtonError, NotFoundError, RefusedRequestError
from newton.runtime.api.error_page import build_error_page, is_dashboard_path
from newton.runtime.api.middleware.request_log import ERROR_CODE_KEY, REQUEST_ID_KEY, add_response_headers
from newton.runtime.error_status import get_error_status
from newton.runtime.hint_names import HintInterface, rename_in_error

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PROBLEM_MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 2
MCP_PATH = "/mcp"
JSON_RPC_INVALID_REQUEST, JSON_RPC_INTERNAL_ERROR = -32600, -32603
OPENAI_PATHS = re.compile(
    "/v1/(assistants|audio|batches|chat|completions|conversations|embeddings|evals|files|fine_tuning|images|models"
    "|moderations|realtime|responses|threads|uploads|vector_stores|videos)(/|$)"
)
OPENAI_ERROR_TYPES = {403: "permission_error", 429: "rate_limit_error"}
# OpenAI's codes for Newton's; an error without one keeps its own.
OPENAI_ERROR_CODES = {
    "unauthorized": "invalid_api_key",
    "overloaded": "rate_limit_exceeded",
    "rate_limited": "rate_limit_exceeded",
    "token_limit_reached": "insufficient_quota",
    "storage_quota_exceeded": "insufficient_quota",
    "context_window_exceeded": "context_length_exceeded",
}
_UNION_TAG = re.compile(r"\W|^(str|dict|list|tuple)$")  # in the place of a validation error: a type, not a field

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


class ProblemDetails(BaseModel):
    """An error as a problem document of RFC 9457."""

    type: str = Field(examples=["urn:newton:not_found"])
    title: str
    status: int
    detail: str = Field(description="What is wrong.")
    hint: str = Field(description="How to resolve the error.")


class OpenAIError(BaseModel):
    """An error in OpenAI's format. `message` contains the problem and the remedy."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIErrorResponse(BaseModel):
    """The response body of an error in OpenAI's format."""

    error: OpenAIError


# The description of errors in the OpenAPI document, for routes of OpenAI's protocol.
OPENAI_ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {"model": OpenAIErrorResponse, "description": "An error in the format of OpenAI."}
}


def to_problem(error: NewtonError, interface: HintInterface = "http") -> ProblemDetails:
    """Return the problem document (RFC 9457) for an error.

    Where the error names a command, the document names the operation of `interface` that does the same.
    """
    status, error = get_error_status(error.code), rename_in_error(error, interface)
    return ProblemDetails(
        type=f"urn:newton:{error.code}", title=status.title, status=status.http, detail=error.what, hint=error.hint
    )


def error_response(error: NewtonError, path: str) -> Response:
    """Return the HTTP response for an error, in the format that clients of the path expect.

    This is OpenAI's format for an OpenAI path, JSON-RPC for MCP, HTML for the dashboard, else a problem document.
    """
    status = get_error_status(error.code)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status.retryable else {}
    if status.http == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = 'Bearer realm="newton"'
    if is_openai_path(path):
        return JSONResponse(to_openai_error(error).model_dump(), _openai_status(error), headers=headers)
    if path == MCP_PATH:
        return JSONResponse(to_json_rpc_error(error), status.http, headers=headers)
    problem = to_problem(error)
    if is_dashboard_path(path):
        return build_error_page(problem.status, problem.title, problem.detail, problem.hint, headers)
    return JSONResponse(problem.model_dump(), status.http, headers=headers, media_type=PROBLEM_MEDIA_TYPE)


def is_openai_path(path: str) -> bool:
    """Return True for a path of OpenAI's API, even if Newton does not implement it.

    >>> is_openai_path("/v1/chat/completions"), is_openai_path("/v1/embeddings"), is_openai_path("/v1/memories")
    (True, True, False)
    """
    return OPENAI_PATHS.match(path) is not None


def to_json_rpc_error(error: NewtonError) -> dict[str, Any]:
    """Return the JSON-RPC message for an error, with the problem document in `data`.

    The message contains the problem and the remedy, because MCP clients show only the message.

    >>> to_json_rpc_error(InputError("The body is empty.", hint="Send a request."))["error"]["message"]
    'The body is empty. Send a request.'
    """
    problem, error = to_problem(error, "mcp"), rename_in_error(error, "mcp")
    code = JSON_RPC_INVALID_REQUEST if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR else JSON_RPC_INTERNAL_ERROR
    described = {"code": code, "message": f"{error.what} {error.hint}", "data": problem.model_dump()}
    return {"jsonrpc": "2.0", "id": None, "error": described}


def to_openai_error(error: NewtonError) -> OpenAIErrorResponse:
    """Return an error in OpenAI's format. If a model server refused the request, keep the server's error code."""
    server_code = error.server_code if isinstance(error, RefusedRequestError) else None
    code = server_code or OPENAI_ERROR_CODES.get(error.code, error.code)
    return _openai_body(f"{error.what} {error.hint}", code, _openai_status(error), param=error.param)


def _openai_body(message: str, code: str, status: int, *, param: str | None = None) -> OpenAIErrorResponse:
    kind = OPENAI_ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return OpenAIErrorResponse(error=OpenAIError(message=message, type=kind, param=param, code=code))


def _openai_status(error: NewtonError) -> int:
    status = get_error_status(error.code).http
    return HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status


def to_input_error(error: RequestValidationError, request: Request) -> InputError:
    """Return an InputError for a validation error of a request."""
    first, hint = select_problem(error.errors()), "`/openapi.json` describes the endpoint."
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return InputError(f"The body is not JSON: {reason} at character {first['loc'][-1]}.", hint=hint)
    if place == "body" and first["type"] == "missing":
        return InputError("The body is missing.", hint=f"Send JSON; {hint}")
    if place == "body" and "json" not in request.headers.get("content-type", ""):
        return InputError("The content type is not JSON.", hint="Send `Content-Type: application/json`.")
    hint = f"{_suggest_field(first, request)} {hint}".strip()
    return InputError(f"{place}: {describe_problem(first)}.", hint=hint, param=_to_param(first["loc"][1:]))


def _suggest_field(error: "ErrorDetails", request: Request) -> str:
    """Return the question "Did you mean ...?" for an unknown field of the body or the query; else an empty string."""
    route, place = request.scope.get("route"), error["loc"][0]
    fields = {
        "body": (getattr(route, "body_field", None),),
        "query": getattr(getattr(route, "dependant", None), "query_params", ()),
    }
    for field in filter(None, fields.get(str(place), ())):
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            return suggest_field({**error, "loc": error["loc"][1:]}, model)
    return ""


def _to_param(place: Sequence[str | int]) -> str | None:
    """Return the field that a validation error is about, in OpenAI's notation; None for the whole body.

    >>> _to_param(("messages", 0, "content", "str"))
    'messages[0].content'
    """
    fields = [part for part in place if isinstance(part, int) or not _UNION_TAG.search(part)]
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fields).lstrip(".") or None


def _unknown_endpoint_response(path: str) -> Response:
    """Return the response for a path without an endpoint. Its hint says if the base URL lacks /v1 or has it twice."""
    what, hint = f"There is no endpoint {path}.", "`/openapi.json` lists the endpoints."
    if is_openai_path(f"/v1{path}"):  # an OpenAI client, which shows only errors in OpenAI's format
        path, hint = f"/v1{path}", "Add /v1 to the base URL."
    elif path.startswith("/v1/v1/"):
        hint = "The path has /v1 twice: remove it from the URL of the daemon."
        path = path.removeprefix("/v1")
    return error_response(NotFoundError(what, hint=hint), path)


def to_internal_error(error: Exception) -> NewtonError:
    """Log an unexpected exception, and return an error that does not reveal its details."""
    trace = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in trace]
    log.error("request_failed", error=type(error).__name__, at=places)  # the message may contain user text
    return create_internal_error("request_failed")


def create_internal_error(log_event: str) -> NewtonError:
    """Return an error whose text reveals only `log_event`, the name under which the log has the details."""
    return NewtonError("Internal error.", hint=f"Report the error with its entry `{log_event}` in the daemon's log.")


def install_error_handlers(app: FastAPI) -> None:
    """Register handlers that convert all errors of endpoints to responses in the formats of this module."""

    @app.exception_handler(NewtonError)
    async def expected(request: Request, error: NewtonError) -> Response:
        setattr(request.state, ERROR_CODE_KEY, error.code)
        return error_response(error, request.url.path)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        response = error_response(to_internal_error(error), request.url.path)
        # RequestLogMiddleware does not see this response
        add_response_headers(response.headers, getattr(request.state, REQUEST_ID_KEY))
        return response

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        setattr(request.state, ERROR_CODE_KEY, InputError.code)
        return error_response(to_input_error(error, request), request.url.path)

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            return _unknown_endpoint_response(request.url.path)
        if is_openai_path(request.url.path):
            body = _openai_body(error.detail, "invalid_request", error.status_code)
            return JSONResponse(body.model_dump(), error.status_code, headers=error.headers)
        allowed = (error.headers or {}).get("Allow")
        problem = ProblemDetails(
            type="about:blank",
            title=error.detail,
            status=error.status_code,
            detail=f"{request.url.path} does not support {request.method}." if allowed else error.detail,
            hint=f"Use the method {allowed}." if allowed else "`/openapi.json` lists the endpoints and their methods.",
        )
        return JSONResponse(
            problem.model_dump(), error.status_code, headers=error.headers, media_type=PROBLEM_MEDIA_TYPE
        )
