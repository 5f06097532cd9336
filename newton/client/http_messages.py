"""Encoding of requests and decoding of responses: JSON, problem documents, server-sent events, retry delays."""

import json
import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import httpx2

from .errors import ApiError

FIRST_RETRY_SECONDS = 0.2  # the base of the exponential backoff
MAX_RETRY_SECONDS = 10.0
RETRY_STATUSES = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

JSON_HEADERS = {"Content-Type": "application/json"}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
MCP_PATH = "/mcp?tools=all"


class ServerSentEvent(NamedTuple):
    """A server-sent event with its decoded JSON `data`. `id` is empty if the event has none."""

    id: str
    type: str
    data: Mapping[str, Any]


class EventParser:
    """Parser that collects the lines of a stream into server-sent events."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> ServerSentEvent | None:
        """Add a line; return the event that it completes, or None. Raises ApiError if the event's data is not JSON."""
        name, _, value = line.partition(": ")
        if line and name:
            self._fields[name] = value
            return None
        fields = self._fields
        if "event" not in fields:
            return None
        self._fields = {}
        with expect_newton_response():
            return ServerSentEvent(fields.get("id", ""), fields["event"], json.loads(fields["data"]))


def timeout_header(seconds: float | None) -> dict[str, str]:
    """Return the header that limits how long the daemon searches memory for a request; {} for None, the default."""
    return {} if seconds is None else {"X-Newton-Timeout": f"{seconds:g}"}


def encode_body(body: Mapping[str, object] | None) -> bytes | None:
    """Encode a request body as ASCII JSON, or return None for None. The daemon rejects lone surrogates."""
    return None if body is None else json.dumps(body).encode()


def encode_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return a copy without the fields that are None, and with times as ISO 8601 text."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in fields.items()
        if value is not None
    }


def is_retryable(response: httpx2.Response) -> bool:
    """Return True if the same request may succeed later."""
    status = response.status_code
    return status in RETRY_STATUSES or (status == 409 and "retry-after" in response.headers)


def retry_delay(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: `Retry-After`, or exponential backoff with jitter, at most MAX_RETRY_SECONDS."""
    if retry_after and retry_after.isdecimal():
        return min(float(retry_after), MAX_RETRY_SECONDS)
    return min(FIRST_RETRY_SECONDS * 2**attempt, MAX_RETRY_SECONDS) * random.uniform(0.5, 1.0)


def read_redactions(response: httpx2.Response) -> dict[str, int]:
    """Return the secrets, counted by kind, that the daemon removed from the request of a response."""
    counts = (part.partition("=") for part in response.headers.get("x-newton-redacted", "").split(", ") if part)
    return {kind: int(number) for kind, _, number in counts}


def decode_json(response: httpx2.Response) -> Any:
    """Return the JSON of a response. Raises ApiError if the body is not JSON."""
    with expect_newton_response():
        return response.json()


def to_error(response: httpx2.Response) -> ApiError:
    """Convert an error response to an ApiError.

    The error has the fields of the response's problem document (RFC 9457), which may be part of a JSON-RPC error.
    Without such a document, its code is `unexpected_response`.
    """
    try:
        error = error_from_problem(_read_problem(response))
    except ApiError:
        return _unexpected_response_error(f"The server responded with status {response.status_code}.")
    if error.code != "database_unavailable":
        return error
    return ApiError(
        error.code,
        f"The daemon at {base_address(response.request.url)} cannot reach its database: {error.detail}",
        hint=f"Retry later; run `newton doctor` on the host of the daemon. {error.hint}",
        title=error.title,
        status=error.status,
    )


def _read_problem(response: httpx2.Response) -> Mapping[str, Any]:
    with expect_newton_response():
        body = decode_json(response)
        return body["error"]["data"] if "jsonrpc" in body else body


def error_from_problem(problem: Mapping[str, Any]) -> ApiError:
    """Convert a problem document (RFC 9457) to an ApiError. Raises ApiError if it has another format."""
    with expect_newton_response():
        code, status = str(problem["type"]).rpartition(":")[2], int(problem["status"])
        detail, hint, title = str(problem["detail"]), str(problem["hint"]), str(problem["title"])
        return ApiError(code, detail, hint=hint, title=title, status=status)


def decode_tool_result(response: httpx2.Response) -> dict[str, Any]:
    """Return the structured result of an MCP tool call. Raises ApiError if the tool failed."""
    with expect_newton_response():
        result = decode_json(response)["result"]
        fields, is_error = result["structuredContent"], result["isError"]
        if not is_error:
            return fields
        error = ApiError(str(fields["code"]), str(fields["error"]), hint=str(fields["hint"]))
    raise error


def connection_lost_error() -> ApiError:
    """Return the ApiError for a connection that broke during a reply."""
    return ApiError(
        "connection_lost",
        "The connection to the daemon was lost during the reply.",
        hint="The text so far is stored if possible. Check that `newton serve` runs, and send the message again.",
        title="Connection lost",
    )


def unreachable_error(url: httpx2.URL, error: httpx2.TransportError) -> ApiError:
    """Return the ApiError for a daemon that cannot be reached at `url`."""
    return ApiError(
        "daemon_unreachable",
        f"The daemon at {base_address(url)} cannot be reached: {str(error) or type(error).__name__}.",
        hint="Check that `newton serve` runs, and that the URL has its port.",
        title="Daemon unreachable",
    )


def base_address(url: httpx2.URL) -> str:
    """Return the scheme, host and port of a URL."""
    return f"{url.scheme}://{url.netloc.decode()}"


@contextmanager
def expect_newton_response() -> Generator[None]:
    """Raise ApiError if the block fails to decode a response, which another program or version must have sent."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unexpected_response_error("The response is not from a Newton daemon of this version.") from None


def _unexpected_response_error(detail: str) -> ApiError:
    hint = "Check the address, and that client and daemon have the same version."
    return ApiError("unexpected_response", detail, hint=hint, title="Unexpected response")
