"""How requests reach the daemon: what fails on the way is sent again under the same Idempotency-Key."""

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
TIMEOUT_SECONDS = 65  # a little longer than the daemon lets anything take
FIRST_RETRY_SECONDS = 0.2  # seconds after the first failure, doubled with each
MAX_RETRY_SECONDS = 10.0
RETRY_STATUSES = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
JSON_HEADERS = {"Content-Type": "application/json"}
CONNECTION_LOST = DatabaseError(
    "The daemon went away in the middle of the answer.",
    hint="What came until then is kept as far as it could be. See that `newton serve` runs, and say it again.",
)


class ServerSentEvent(NamedTuple):
    """An event of a stream as it comes; of some `id` is empty."""

    id: str
    type: str
    data: Mapping[str, Any]


class DaemonConnection:
    """How requests are sent, and sent again."""

    def __init__(
        self, url: str = "http://127.0.0.1:8700", *, token: str, agent: str | None = None, attempts: int = MAX_ATTEMPTS
    ) -> None:
        shown = {"Authorization": f"Bearer {token}", **({"X-Newton-Agent": agent} if agent else {})}
        # a proxy of the environment would be given the token, and would look for this machine on its own
        near = httpx2.URL(url).host in LOOPBACK_HOSTS
        self._http = httpx2.AsyncClient(base_url=url, headers=shown, timeout=TIMEOUT_SECONDS, trust_env=not near)
        self.attempts = attempts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def get(self, path: str, asked: Mapping[str, str | int | bool] | None = None) -> Any:
        """What the daemon answers there."""
        return _decode_json(await self.request("GET", path, asked=asked))

    async def post(self, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None) -> Any:
        """What the daemon answers there, done once however often it had to be sent."""
        given = {name: _to_json_value(value) for name, value in (body or {}).items() if value is not None}
        return _decode_json(await self.request("POST", path, body=given, key=key or str(uuid4())))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        shown: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncGenerator[ServerSentEvent]]:
        """The events that the daemon answers there, as they come; asked for once."""
        async with self._http.stream(
            method, path, content=_encode_body(body), headers={**JSON_HEADERS, **(shown or {})}
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
        asked: Mapping[str, str | int | bool] | None = None,
        key: str | None = None,
    ) -> httpx2.Response:
        """The answer, after as many attempts as it took."""
        content, shown = _encode_body(body), {**JSON_HEADERS, **({"Idempotency-Key": key} if key else {})}
        for attempt in range(1, self.attempts + 1):
            try:
                answer = await self._http.request(method, path, content=content, params=asked, headers=shown)
            except httpx2.TransportError as error:
                if attempt == self.attempts:
                    raise self.unreachable_error(error) from error
                await asyncio.sleep(retry_delay(attempt, None))
                continue
            later = answer.headers.get("retry-after")
            if not answer.is_error:
                return answer
            if attempt == self.attempts or not (
                answer.status_code in RETRY_STATUSES or (answer.status_code == 409 and later)
            ):
                raise _to_error(answer)
            await asyncio.sleep(retry_delay(attempt, later))
        raise AssertionError("unreachable")

    def unreachable_error(self, error: httpx2.TransportError) -> DatabaseError:
        """That nothing answers there."""
        return DatabaseError(
            f"The daemon at {_base(self._http.base_url)} cannot be reached: {str(error) or type(error).__name__}.",
            hint="See that `newton serve` runs, and on which port.",
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
    """ASCII: half a character is for the daemon to refuse."""
    return None if body is None else json.dumps(body).encode()


def _to_json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def retry_delay(attempt: int, retry_after: str | None) -> float:
    """Seconds: as long as the daemon asked for, else longer with each failure, and never the same for two clients."""
    if retry_after and retry_after.isdecimal():
        return min(float(retry_after), MAX_RETRY_SECONDS)
    return min(FIRST_RETRY_SECONDS * 2**attempt, MAX_RETRY_SECONDS) * random.uniform(0.5, 1.0)


def _error_types(base: type[NewtonError]) -> dict[str, type[NewtonError]]:
    found = {base.code: base}
    for kind in base.__subclasses__():
        found |= {code: one for code, one in _error_types(kind).items() if code not in found}
    return found


def _to_error(response: httpx2.Response) -> NewtonError:
    """The failure that a problem document tells of."""
    try:
        error = error_from_problem(_decode_json(response))
    except OverloadedError:
        return _unexpected_response_error(f"It was answered with {response.status_code}.")
    if not isinstance(error, DatabaseError):
        return error
    return DatabaseError(  # its remedy is for the machine of the daemon
        f"The daemon at {_base(response.request.url)} answers, but not its database: {error.what}",
        hint=f"Ask again later; `newton doctor` says more where the daemon runs. {error.hint}",
    )


def _base(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


def error_from_problem(problem: Mapping[str, str]) -> NewtonError:
    """The failure of a problem document. Raises BusyError for what is none."""
    with expect_newton_response():
        kind = _error_types(NewtonError).get(str(problem["type"]).rpartition(":")[2], NewtonError)
        return kind(str(problem["detail"]), hint=str(problem["hint"]))


def _decode_json(response: httpx2.Response) -> Any:
    with expect_newton_response():
        return response.json()


@contextmanager
def expect_newton_response() -> Generator[None]:
    """What cannot be read as Newton writes it is a BusyError: something else answers there, or another version."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unexpected_response_error("It was answered otherwise than Newton answers.") from None


def _unexpected_response_error(detail: str) -> OverloadedError:
    return OverloadedError(detail, hint="See whether Newton is what answers there.")
