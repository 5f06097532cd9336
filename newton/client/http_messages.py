"""Requests and responses of the daemon as values: JSON, problem documents, server-sent events and retries."""

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


class ServerSentEvent(NamedTuple):
    """A server-sent event. `id` may be empty."""

    id: str
    type: str
    data: Mapping[str, Any]


class EventParser:
    """Collects the lines of an event stream."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> ServerSentEvent | None:
        """Return the event that this line ends, if any. Raises ApiError if its data is not JSON."""
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


def encode_body(body: Mapping[str, object] | None) -> bytes | None:
    """Encode as ASCII JSON. Lone surrogates are escaped; the daemon rejects them."""
    return None if body is None else json.dumps(body).encode()


def encode_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields without those that are None; times become ISO 8601 text."""
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


def decode_json(response: httpx2.Response) -> Any:
    """Return the JSON of a response. Raises ApiError if it is none."""
    with expect_newton_response():
        return response.json()


def to_error(response: httpx2.Response) -> ApiError:
    """Return the error for a response with a problem document, alone or in a JSON-RPC error, or with anything else."""
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
    """Return the error that a problem document describes. Raises ApiError for any other JSON."""
    with expect_newton_response():
        code, status = str(problem["type"]).rpartition(":")[2], int(problem["status"])
        detail, hint, title = str(problem["detail"]), str(problem["hint"]), str(problem["title"])
        return ApiError(code, detail, hint=hint, title=title, status=status)


def decode_tool_result(response: httpx2.Response) -> dict[str, Any]:
    """Return the result of a call of a tool. Raises ApiError if it is an error."""
    with expect_newton_response():
        result = decode_json(response)["result"]
        fields, is_error = result["structuredContent"], result["isError"]
        if not is_error:
            return fields
        error = ApiError(str(fields["code"]), str(fields["error"]), hint=str(fields["hint"]))
    raise error


def connection_lost_error() -> ApiError:
    """Return the error for a connection that broke during a reply."""
    return ApiError(
        "connection_lost",
        "The connection to the daemon was lost during the reply.",
        hint="The text so far is stored if possible. Check that `newton serve` runs, and send the message again.",
        title="Connection lost",
    )


def unreachable_error(url: httpx2.URL, error: httpx2.TransportError) -> ApiError:
    """Return the error for a daemon that cannot be reached."""
    return ApiError(
        "daemon_unreachable",
        f"The daemon at {base_address(url)} cannot be reached: {str(error) or type(error).__name__}.",
        hint="Check that `newton serve` runs, and on which port.",
        title="Daemon unreachable",
    )


def base_address(url: httpx2.URL) -> str:
    """Return the scheme, host and port of a URL."""
    return f"{url.scheme}://{url.netloc.decode()}"


@contextmanager
def expect_newton_response() -> Generator[None]:
    """Raise ApiError if the block cannot read the response, which another program or version has sent."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unexpected_response_error("The response is not from a Newton daemon of this version.") from None


def _unexpected_response_error(detail: str) -> ApiError:
    hint = "Check the address, and that client and daemon have the same version."
    return ApiError("unexpected_response", detail, hint=hint, title="Unexpected response")
