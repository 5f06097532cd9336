"""A client of the daemon: its verbs, typed. What fails on the way is sent again under the same Idempotency-Key."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypedDict, cast
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx2

from newton.errors import BusyError, DatabaseError, NewtonError

ATTEMPTS = 5
SECONDS = 65  # a little longer than the daemon lets anything take
PAUSE = 0.2  # seconds after the first failure, doubled with each
LONGEST_PAUSE = 10.0
AGAIN = frozenset({429, 502, 503, 504})  # and 409 with Retry-After

Outcome = Literal["success", "partial", "failure"]
Id = UUID | str


class Remembered(TypedDict):
    """What became of a fact that was told, and the memory that has it."""

    memory_id: str
    learnt: Literal["new", "confirmed", "unchanged"]


class Hit(TypedDict):
    """A memory that may be meant, with what speaks for it."""

    memory_id: str
    kind: str
    state: str
    text: str
    evidence: float
    relevance: float
    cosine: float
    lexical: float
    occurred_at: str
    trust: str
    ref: str | None


class Recalled(TypedDict):
    found: list[Hit]
    missing: dict[str, str]


class Item(TypedDict):
    """A memory that stands in a context."""

    memory_id: str
    refs: list[str]
    score: float
    evidence: float
    reason: str
    kind: str
    layer: str
    detail: Literal["summary", "micro"]
    tokens: int
    text: str
    source: str
    features: dict[str, float]


class Context(TypedDict):
    """A context with the reason for each memory that is in it, or is not; the daemon answers more than this."""

    bundle_id: str
    text: str
    tokens: int
    budget: int
    frame: dict[str, Any]
    layers: dict[str, dict[str, int]]
    items: list[Item]
    dropped: list[dict[str, Any]]
    missing: dict[str, str]
    timings_ms: dict[str, float]


class Recorded(TypedDict):
    """A decision that is in the ledger, with what spoke for and against it."""

    decision_id: str
    new: bool
    blocked: bool
    quality: float
    precedents: list[dict[str, Any]]
    guardrails: list[dict[str, str]]


class Message(TypedDict, total=False):
    """A line of dialogue; role and content are needed."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str
    ref: str
    at: str
    calls: list[dict[str, str]]
    answers: str


class Worked(TypedDict):
    """The task that was worked on, and the number of the one that is current now."""

    task_id: str
    number: int
    depth: int
    status: Literal["active", "blocked", "complete", "failed"]
    current: int | None


class Told(NamedTuple):
    """An event; `number` takes the stream up again behind it."""

    number: int
    type: str
    about: Mapping[str, Any]


class Client:
    """One agent's mind, over HTTP. It is closed at the end of `async with`.

    A verb raises what the daemon answers as the same failure that it is there, and BusyError or DatabaseError when it
    is out of reach for longer than a few attempts take. `agent` is for the operator's token alone.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8700", *, token: str, agent: str | None = None, attempts: int = ATTEMPTS
    ) -> None:
        shown = {"Authorization": f"Bearer {token}", **({"X-Newton-Agent": agent} if agent else {})}
        self._http = httpx2.AsyncClient(base_url=url, headers=shown, timeout=SECONDS)
        self._attempts = attempts

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def remember(
        self, content: str, *, key: str | None = None, **more: str | float | datetime | None
    ) -> Remembered:
        """Keeps a fact; `more` may name subject, attribute, confidence, importance, at and until."""
        return await self._post("/v1/memories", {"content": content, **more}, key=key)

    async def recall(self, text: str, *, limit: int = 10, kinds: Sequence[str] | None = None) -> Recalled:
        return await self._post("/v1/recall", {"text": text, "limit": limit, "kinds": kinds})

    async def context(self, input_: str, *, tokens: int | None = None, **more: object) -> Context:
        """The context for an input; `more` are the other fields of `POST /v1/context`."""
        return await self._post("/v1/context", {"input": input_, "tokens": tokens, **more})

    async def expand(self, memory_id: Id) -> dict[str, Any]:
        """A memory in full."""
        return await self._get(f"/v1/memories/{memory_id}")

    async def confirm(self, memory_id: Id, *, key: str | None = None) -> bool:
        """Says that a fact is so; whether that counted."""
        return (await self._post(f"/v1/memories/{memory_id}/confirm", key=key))["counted"]

    async def supersede(self, memory_id: Id, content: str, *, key: str | None = None) -> str:
        """Puts a statement in the place of a fact; the id of it."""
        said = await self._post(f"/v1/memories/{memory_id}/supersede", {"content": content}, key=key)
        return said["superseded_by"]

    async def retract(self, memory_id: Id, *, key: str | None = None) -> None:
        """Says that a fact was never so."""
        await self._post(f"/v1/memories/{memory_id}/retract", key=key)

    async def forget(self, memory_id: Id, *, derived: bool = False, because: str = "asked for") -> list[str]:
        """Forgets a memory for good; the ids of all that went."""
        asked = {"confirm": "forget", "derived": derived, "because": because}
        said = await self._sent("DELETE", f"/v1/memories/{memory_id}", asked=asked, key=str(uuid4()))
        return said.json()["forgotten"]

    async def say(self, session: str, messages: Sequence[Message], *, key: str | None = None) -> list[int]:
        """Adds lines to a session; the places of those that are new."""
        path = f"/v1/sessions/{quote(session, safe='')}/messages"
        return (await self._post(path, {"messages": messages}, key=key))["positions"]

    async def view(self, session: str, *, most: int | None = None) -> dict[str, Any]:
        """What a model would be sent of a session now."""
        return await self._get(f"/v1/sessions/{quote(session, safe='')}/view", {"most": most} if most else None)

    async def push(self, goal: str, *, session: str | None = None, key: str | None = None) -> Worked:
        """Begins a task within the current one."""
        return await self._post("/v1/tasks", {"goal": goal, "session": session}, key=key)

    async def pop(self, result: str = "", *, session: str | None = None, key: str | None = None) -> Worked:
        """Ends the current task with its result."""
        return await self._post("/v1/tasks/pop", {"result": result, "session": session}, key=key)

    async def decide(self, description: str, *, confidence: float, key: str | None = None, **more: object) -> Recorded:
        """Records a decision before it is carried out; `more` are the other fields of `POST /v1/decisions`."""
        given = {"description": description, "confidence": confidence, **more}
        return await self._post("/v1/decisions", given, key=key)

    async def review(self, decision_id: Id, outcome: Outcome, *, lesson: str | None = None) -> None:
        """Gives a decision its outcome, once."""
        await self._post(f"/v1/decisions/{decision_id}/review", {"outcome": outcome, "lesson": lesson})

    async def calibration(self) -> dict[str, Any]:
        """How far stated confidence can be trusted."""
        return await self._get("/v1/calibration")

    async def pages(self, path: str, **asked: str | int | bool) -> AsyncGenerator[dict[str, Any]]:
        """Everything of a list that comes in pages, such as `/v1/decisions`."""
        cursor: str | None = None
        while True:
            page = await self._get(path, {**asked, **({"cursor": cursor} if cursor else {})})
            for item in page["items"]:
                yield item
            if (cursor := page["next"]) is None:
                return

    async def events(self, *, after: int | None = None) -> AsyncGenerator[Told]:
        """What happens, from now on or behind an event. A connection that breaks is taken up where it was."""
        failures = 0
        while True:
            try:
                async with self._stream(after) as told:
                    async for one in told:
                        after, failures = one.number, 0
                        yield one
            except httpx2.TransportError as error:
                failures += 1
                if failures >= self._attempts:
                    raise _away(error) from error
            await asyncio.sleep(_pause(failures, None))

    @asynccontextmanager
    async def _stream(self, after: int | None) -> AsyncGenerator[AsyncGenerator[Told]]:
        shown = {} if after is None else {"Last-Event-ID": str(after)}
        async with self._http.stream("GET", "/v1/events", headers=shown) as answer:
            if answer.is_error:
                await answer.aread()
                raise _failure(answer)
            yield _events(answer)

    async def _get(self, path: str, asked: Mapping[str, str | int | bool] | None = None) -> Any:
        return (await self._sent("GET", path, asked=asked)).json()

    async def _post(self, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None) -> Any:
        given = {name: _plain(value) for name, value in (body or {}).items() if value is not None}
        return (await self._sent("POST", path, body=given, key=key or str(uuid4()))).json()

    async def _sent(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        asked: Mapping[str, str | int | bool] | None = None,
        key: str | None = None,
    ) -> httpx2.Response:
        shown = {"Idempotency-Key": key} if key else {}
        for attempt in range(1, self._attempts + 1):
            try:
                answer = await self._http.request(method, path, json=body, params=asked, headers=shown)
            except httpx2.TransportError as error:
                if attempt == self._attempts:
                    raise _away(error) from error
                await asyncio.sleep(_pause(attempt, None))
                continue
            later = answer.headers.get("retry-after")
            if not answer.is_error:
                return answer
            if attempt == self._attempts or not (answer.status_code in AGAIN or (answer.status_code == 409 and later)):
                raise _failure(answer)
            await asyncio.sleep(_pause(attempt, later))
        raise AssertionError("unreachable")


async def _events(answer: httpx2.Response) -> AsyncGenerator[Told]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif "id" in fields:
            yield Told(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _pause(attempt: int, later: str | None) -> float:
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
        problem = cast("dict[str, str]", answer.json())
        code = problem["type"].rpartition(":")[2]
        kind = _kinds(NewtonError).get(code, NewtonError)
        if kind is DatabaseError:  # its remedy is for the machine of the daemon
            return DatabaseError(
                f"The daemon at {_base(answer.request)} answers, but not its database: {problem['detail']}",
                hint=f"Ask again later; `newton doctor` says more where the daemon runs. {problem['hint']}",
            )
        return kind(problem["detail"], hint=problem["hint"])
    except (ValueError, KeyError, TypeError):
        return BusyError(
            f"It was answered with {answer.status_code}.", hint="See whether Newton is what answers there."
        )


def _base(asked: httpx2.Request) -> str:
    return f"{asked.url.scheme}://{asked.url.netloc.decode()}"


def _away(error: httpx2.TransportError) -> DatabaseError:
    return DatabaseError(
        f"The daemon at {_base(error.request)} cannot be reached: {str(error) or type(error).__name__}.",
        hint="See that `newton serve` runs, and on which port.",
    )
