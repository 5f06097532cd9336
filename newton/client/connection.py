"""HTTP connection to the daemon. Failed requests are retried with the same idempotency key."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, NamedTuple, Self
from uuid import uuid4

import httpx2

from newton.errors import DatabaseError, NewtonError, OverloadedError

MAX_ATTEMPTS = 5
TIMEOUT_SECONDS = 65  # longer than the time limit of a request in the daemon
FIRST_RETRY_SECONDS = 0.2  # the base of the exponential backoff
MAX_RETRY_SECONDS = 10.0
RETRY_STATUSES = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
JSON_HEADERS = {"Content-Type": "application/json"}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
CONNECTION_LOST = DatabaseError(
    "The connection to the daemon was lost during the reply.",
    hint="The text so far is stored if possible. Check that `newton serve` runs, and send the message again.",
)


class ServerSentEvent(NamedTuple):
    """A server-sent event. `id` may be empty."""

    id: str
    type: str
    data: Mapping[str, Any]


class DaemonConnection:
    """An HTTP connection with retries and exponential backoff."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8700",
        *,
        token: str,
        agent: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}", **({"X-Newton-Agent": agent} if agent else {})}
        # A proxy from the environment would see the token, and cannot reach a loopback address.
        is_local = httpx2.URL(url).host in LOOPBACK_HOSTS
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=not is_local)
        self.max_attempts = max_attempts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, params: Mapping[str, str | int | bool] | None = None) -> Any:
        """Return the JSON of a GET request."""
        return _decode_json(await self.request("GET", path, params=params))

    async def post(
        self, path: str, body: Mapping[str, object] | None = None, *, idempotency_key: str | None = None
    ) -> Any:
        """Return the JSON of a POST request. It takes effect only once, also if it is retried."""
        fields = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in (body or {}).items()
            if value is not None
        }
        key = idempotency_key or str(uuid4())
        return _decode_json(await self.request("POST", path, body=fields, idempotency_key=key))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncGenerator[ServerSentEvent]]:
        """Open an event stream. It is not retried."""
        content, headers = _encode_body(body), {**JSON_HEADERS, **(headers or {})}
        async with self._http.stream(method, path, content=content, headers=headers) as response:
            if response.is_error:
                await response.aread()
                raise _to_error(response)
            yield _parse_events(response)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        params: Mapping[str, str | int | bool] | None = None,
        idempotency_key: str | None = None,
    ) -> httpx2.Response:
        """Send a request, with retries. Raises the error that the daemon reports."""
        content = _encode_body(body)
        headers = {**JSON_HEADERS, **({"Idempotency-Key": idempotency_key} if idempotency_key else {})}
        for attempt in range(1, self.max_attempts + 1):
            try:
                response = await self._http.request(method, path, content=content, params=params, headers=headers)
            except httpx2.TransportError as error:
                if attempt == self.max_attempts:
                    raise self.unreachable_error(error) from error
                await asyncio.sleep(retry_delay(attempt, None))
                continue
            if not response.is_error:
                return response
            status, retry_after = response.status_code, response.headers.get("retry-after")
            is_retryable = status in RETRY_STATUSES or (status == 409 and retry_after)
            if attempt == self.max_attempts or not is_retryable:
                raise _to_error(response)
            await asyncio.sleep(retry_delay(attempt, retry_after))
        raise AssertionError("unreachable")

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Call a tool of the MCP server and return its result. It is not retried, because it may store something."""
        call = {"name": name, "arguments": dict(arguments)}
        content = _encode_body({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        try:
            response = await self._http.post("/mcp", content=content, headers={**JSON_HEADERS, **MCP_HEADERS})
        except httpx2.TransportError as error:
            raise self.unreachable_error(error) from error
        if response.is_error:
            raise _to_error(response)
        with expect_newton_response():
            result = _decode_json(response)["result"]
            fields, is_error = result["structuredContent"], result["isError"]
        if is_error:
            raise error_from_code(fields["code"], fields["error"], hint=fields["hint"])
        return fields

    def unreachable_error(self, error: httpx2.TransportError) -> DatabaseError:
        """Return the error for a daemon that cannot be reached."""
        return DatabaseError(
            f"The daemon at {_base(self._http.base_url)} cannot be reached: {str(error) or type(error).__name__}.",
            hint="Check that `newton serve` runs, and on which port.",
        )


async def _parse_events(response: httpx2.Response) -> AsyncGenerator[ServerSentEvent]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif "event" in fields:
            with expect_newton_response():
                event = ServerSentEvent(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            yield event
            fields = {}


def _encode_body(body: Mapping[str, object] | None) -> bytes | None:
    """Encode as ASCII JSON. Lone surrogates are escaped; the daemon rejects them."""
    return None if body is None else json.dumps(body).encode()


def retry_delay(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: `Retry-After`, or exponential backoff with jitter, at most MAX_RETRY_SECONDS."""
    if retry_after and retry_after.isdecimal():
        return min(float(retry_after), MAX_RETRY_SECONDS)
    return min(FIRST_RETRY_SECONDS * 2**attempt, MAX_RETRY_SECONDS) * random.uniform(0.5, 1.0)


def _error_types(base: type[NewtonError]) -> dict[str, type[NewtonError]]:
    types = {base.code: base}
    for subclass in base.__subclasses__():
        types = _error_types(subclass) | types
    return types


def _to_error(response: httpx2.Response) -> NewtonError:
    """Return the error for a response with a problem document."""
    try:
        error = error_from_problem(_decode_json(response))
    except OverloadedError:
        return _unexpected_response_error(f"The server responded with status {response.status_code}.")
    if not isinstance(error, DatabaseError):
        return error
    return DatabaseError(
        f"The daemon at {_base(response.request.url)} cannot reach its database: {error.what}",
        hint=f"Retry later; run `newton doctor` on the host of the daemon. {error.hint}",
    )


def _base(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


def error_from_problem(problem: Mapping[str, str]) -> NewtonError:
    """Return the error that a problem document describes. Raises OverloadedError for any other JSON."""
    with expect_newton_response():
        return error_from_code(str(problem["type"]).rpartition(":")[2], problem["detail"], hint=problem["hint"])


def error_from_code(code: object, what: object, *, hint: object) -> NewtonError:
    """Return the error with this code."""
    return _error_types(NewtonError).get(str(code), NewtonError)(str(what), hint=str(hint))


def _decode_json(response: httpx2.Response) -> Any:
    with expect_newton_response():
        return response.json()


@contextmanager
def expect_newton_response() -> Generator[None]:
    """Raise OverloadedError if the block cannot read the response, which another program or version has sent."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unexpected_response_error("The response is not from a Newton daemon of this version.") from None


def _unexpected_response_error(detail: str) -> OverloadedError:
    return OverloadedError(detail, hint="Check the address, and that client and daemon have the same version.")
