"""HTTP connection to the daemon; failed requests are retried with the same Idempotency-Key."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

import httpx2

from newton.errors import DatabaseError, NewtonError, OverloadedError

MAX_ATTEMPTS = 5
TIMEOUT_SECONDS = 65  # longer than the time limit of the daemon
FIRST_RETRY_SECONDS = 0.2  # seconds after the first failure, doubled with each
MAX_RETRY_SECONDS = 10.0
RETRY_STATUSES = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
JSON_HEADERS = {"Content-Type": "application/json"}
CONNECTION_LOST = DatabaseError(
    "The connection to the daemon was lost during the reply.",
    hint="The text so far is stored if possible. Check that `newton serve` runs, and send the message again.",
)


class ServerSentEvent(NamedTuple):
    """An event of a stream; `id` may be empty."""

    id: str
    type: str
    data: Mapping[str, Any]


class DaemonConnection:
    """Sends requests with retries and exponential backoff."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8700",
        *,
        token: str,
        agent: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}", **({"X-Newton-Agent": agent} if agent else {})}
        # a proxy from the environment would see the token and cannot reach the loopback address
        near = httpx2.URL(url).host in LOOPBACK_HOSTS
        self._http = httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, trust_env=not near)
        self.max_attempts = max_attempts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def get(self, path: str, params: Mapping[str, str | int | bool] | None = None) -> Any:
        """Return the JSON of a GET request."""
        return _decode_json(await self.request("GET", path, params=params))

    async def post(
        self, path: str, body: Mapping[str, object] | None = None, *, idempotency_key: str | None = None
    ) -> Any:
        """Return the JSON of a POST request, which takes effect once however often it is retried."""
        fields = {name: _to_json_value(value) for name, value in (body or {}).items() if value is not None}
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
        """Open an event stream; it is not retried."""
        async with self._http.stream(
            method, path, content=_encode_body(body), headers={**JSON_HEADERS, **(headers or {})}
        ) as answer:
            if answer.is_error:
                await answer.aread()
                raise _to_error(answer)
            yield _parse_events(answer)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        params: Mapping[str, str | int | bool] | None = None,
        idempotency_key: str | None = None,
    ) -> httpx2.Response:
        """Send a request, with retries. Raises the error of the daemon."""
        content = _encode_body(body)
        headers = {**JSON_HEADERS, **({"Idempotency-Key": idempotency_key} if idempotency_key else {})}
        for attempt in range(1, self.max_attempts + 1):
            try:
                answer = await self._http.request(method, path, content=content, params=params, headers=headers)
            except httpx2.TransportError as error:
                if attempt == self.max_attempts:
                    raise self.unreachable_error(error) from error
                await asyncio.sleep(retry_delay(attempt, None))
                continue
            later = answer.headers.get("retry-after")
            if not answer.is_error:
                return answer
            if attempt == self.max_attempts or not (
                answer.status_code in RETRY_STATUSES or (answer.status_code == 409 and later)
            ):
                raise _to_error(answer)
            await asyncio.sleep(retry_delay(attempt, later))
        raise AssertionError("unreachable")

    def unreachable_error(self, error: httpx2.TransportError) -> DatabaseError:
        """Return the error for a daemon that does not respond."""
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
    """Encode as ASCII JSON, so that lone surrogates reach the daemon, which rejects them."""
    return None if body is None else json.dumps(body).encode()


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def retry_delay(attempt: int, retry_after: str | None) -> float:
    """Return the seconds to wait: `Retry-After`, or exponential backoff with jitter."""
    if retry_after and retry_after.isdecimal():
        return min(float(retry_after), MAX_RETRY_SECONDS)
    return min(FIRST_RETRY_SECONDS * 2**attempt, MAX_RETRY_SECONDS) * random.uniform(0.5, 1.0)


def _error_types(base: type[NewtonError]) -> dict[str, type[NewtonError]]:
    found = {base.code: base}
    for kind in base.__subclasses__():
        found |= {code: one for code, one in _error_types(kind).items() if code not in found}
    return found


def _to_error(response: httpx2.Response) -> NewtonError:
    """Return the error of a problem document."""
    try:
        error = error_from_problem(_decode_json(response))
    except OverloadedError:
        return _unexpected_response_error(f"The server responded with status {response.status_code}.")
    if not isinstance(error, DatabaseError):
        return error
    return DatabaseError(  # its hint is about the host of the daemon
        f"The daemon at {_base(response.request.url)} cannot reach its database: {error.what}",
        hint=f"Retry later; run `newton doctor` on the host of the daemon. {error.hint}",
    )


def _base(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


def error_from_problem(problem: Mapping[str, str]) -> NewtonError:
    """Return the error of a problem document. Raises OverloadedError for any other JSON."""
    with expect_newton_response():
        kind = _error_types(NewtonError).get(str(problem["type"]).rpartition(":")[2], NewtonError)
        return kind(str(problem["detail"]), hint=str(problem["hint"]))


def _decode_json(response: httpx2.Response) -> Any:
    with expect_newton_response():
        return response.json()


@contextmanager
def expect_newton_response() -> Generator[None]:
    """Raise OverloadedError when the block cannot read the response: another program or version responds."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unexpected_response_error("The response is not one of Newton.") from None


def _unexpected_response_error(detail: str) -> OverloadedError:
    return OverloadedError(detail, hint="Check that the address is that of a Newton daemon of the same version.")
