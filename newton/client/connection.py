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

from newton.errors import BusyError, DatabaseError, NewtonError

ATTEMPTS = 5
SECONDS = 65  # a little longer than the daemon lets anything take
PAUSE = 0.2  # seconds after the first failure, doubled with each
LONGEST_PAUSE = 10.0
AGAIN = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
JSON = {"Content-Type": "application/json"}
BROKEN = DatabaseError(
    "The daemon went away in the middle of the answer.",
    hint="What came until then is kept as far as it could be. See that `newton serve` runs, and say it again.",
)


class Event(NamedTuple):
    """An event of a stream as it comes; of some `id` is empty."""

    id: str
    type: str
    about: Mapping[str, Any]


class Connection:
    """How requests are sent, and sent again."""

    def __init__(
        self, url: str = "http://127.0.0.1:8700", *, token: str, agent: str | None = None, attempts: int = ATTEMPTS
    ) -> None:
        shown = {"Authorization": f"Bearer {token}", **({"X-Newton-Agent": agent} if agent else {})}
        # a proxy of the environment would be given the token, and would look for this machine on its own
        near = httpx2.URL(url).host in LOOPBACK
        self._http = httpx2.AsyncClient(base_url=url, headers=shown, timeout=SECONDS, trust_env=not near)
        self.attempts = attempts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def get(self, path: str, asked: Mapping[str, str | int | bool] | None = None) -> Any:
        """What the daemon answers there."""
        return _plainly(await self.sent("GET", path, asked=asked))

    async def post(self, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None) -> Any:
        """What the daemon answers there, done once however often it had to be sent."""
        given = {name: _plain(value) for name, value in (body or {}).items() if value is not None}
        return _plainly(await self.sent("POST", path, body=given, key=key or str(uuid4())))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        shown: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncGenerator[Event]]:
        """The events that the daemon answers there, as they come; asked for once."""
        async with self._http.stream(method, path, content=_content(body), headers={**JSON, **(shown or {})}) as answer:
            if answer.is_error:
                await answer.aread()
                raise _failure(answer)
            yield _events(answer)

    async def sent(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        asked: Mapping[str, str | int | bool] | None = None,
        key: str | None = None,
    ) -> httpx2.Response:
        """The answer, after as many attempts as it took."""
        content, shown = _content(body), {**JSON, **({"Idempotency-Key": key} if key else {})}
        for attempt in range(1, self.attempts + 1):
            try:
                answer = await self._http.request(method, path, content=content, params=asked, headers=shown)
            except httpx2.TransportError as error:
                if attempt == self.attempts:
                    raise self.away(error) from error
                await asyncio.sleep(pause(attempt, None))
                continue
            later = answer.headers.get("retry-after")
            if not answer.is_error:
                return answer
            if attempt == self.attempts or not (answer.status_code in AGAIN or (answer.status_code == 409 and later)):
                raise _failure(answer)
            await asyncio.sleep(pause(attempt, later))
        raise AssertionError("unreachable")

    def away(self, error: httpx2.TransportError) -> DatabaseError:
        """That nothing answers there."""
        return DatabaseError(
            f"The daemon at {_base(self._http.base_url)} cannot be reached: {str(error) or type(error).__name__}.",
            hint="See that `newton serve` runs, and on which port.",
        )


async def _events(answer: httpx2.Response) -> AsyncGenerator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif "event" in fields:
            with understood():
                event = Event(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            yield event
            fields = {}


def _content(body: Mapping[str, object] | None) -> bytes | None:
    """ASCII: half a character is for the daemon to refuse."""
    return None if body is None else json.dumps(body).encode()


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def pause(attempt: int, later: str | None) -> float:
    """Seconds: as long as the daemon asked for, else longer with each failure, and never the same for two clients."""
    if later and later.isdecimal():
        return min(float(later), LONGEST_PAUSE)
    return min(PAUSE * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def _kinds(of: type[NewtonError]) -> dict[str, type[NewtonError]]:
    found = {of.code: of}
    for kind in of.__subclasses__():
        found |= {code: one for code, one in _kinds(kind).items() if code not in found}
    return found


def _failure(answer: httpx2.Response) -> NewtonError:
    """The failure that a problem document tells of."""
    try:
        error = named(_plainly(answer))
    except BusyError:
        return _strange(f"It was answered with {answer.status_code}.")
    if not isinstance(error, DatabaseError):
        return error
    return DatabaseError(  # its remedy is for the machine of the daemon
        f"The daemon at {_base(answer.request.url)} answers, but not its database: {error.what}",
        hint=f"Ask again later; `newton doctor` says more where the daemon runs. {error.hint}",
    )


def _base(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode()}"


def named(problem: Mapping[str, str]) -> NewtonError:
    """The failure of a problem document. Raises BusyError for what is none."""
    with understood():
        kind = _kinds(NewtonError).get(str(problem["type"]).rpartition(":")[2], NewtonError)
        return kind(str(problem["detail"]), hint=str(problem["hint"]))


def _plainly(answer: httpx2.Response) -> Any:
    with understood():
        return answer.json()


@contextmanager
def understood() -> Generator[None]:
    """What cannot be read as Newton writes it is a BusyError: something else answers there, or another version."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _strange("It was answered otherwise than Newton answers.") from None


def _strange(what: str) -> BusyError:
    return BusyError(what, hint="See whether Newton is what answers there.")
