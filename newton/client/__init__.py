"""A client of the daemon: its verbs, typed."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx2

from newton.client.connection import (
    CONNECTION_LOST,
    DaemonConnection,
    error_from_problem,
    expect_newton_response,
    retry_delay,
)

Outcome = Literal["success", "partial", "failure"]
IdLike = UUID | str


class RememberDict(TypedDict):
    """What became of a fact that was told, and the memory that has it."""

    memory_id: str
    learnt: Literal["new", "confirmed", "unchanged"]
    at: str


class RecallItemDict(TypedDict):
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


class RecallDict(TypedDict):
    found: list[RecallItemDict]
    missing: dict[str, str]


class ContextItemDict(TypedDict):
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


class ContextDict(TypedDict):
    """A context with the reason for each memory that is in it, or is not; the daemon answers more than this."""

    bundle_id: str
    text: str
    tokens: int
    budget: int
    frame: dict[str, Any]
    layers: dict[str, dict[str, int]]
    items: list[ContextItemDict]
    dropped: list[dict[str, Any]]
    missing: dict[str, str]
    timings_ms: dict[str, float]


class DecisionDict(TypedDict):
    """A decision that is in the ledger, with what spoke for and against it."""

    decision_id: str
    new: bool
    blocked: bool
    quality: float
    precedents: list[dict[str, Any]]
    guardrails: list[dict[str, str]]


class MessageDict(TypedDict, total=False):
    """A line of dialogue; role and content are needed."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str
    ref: str
    at: str
    calls: list[dict[str, str]]
    answers: str


class TaskChangeDict(TypedDict):
    """The task that was worked on, and the number of the one that is current now."""

    task_id: str
    number: int
    depth: int
    status: Literal["active", "blocked", "complete", "failed"]
    current: int | None


class StreamedEvent(NamedTuple):
    """An event; `number` takes the stream up again behind it."""

    event_id: int
    type: str
    data: Mapping[str, Any]


class TurnEvent(NamedTuple):
    """A part of a turn: a `piece` of the reply with its `text`, a `compaction` on the way, or the `answer`, which ends
    it."""

    type: str
    data: dict[str, Any]


class TokenInfoDict(TypedDict):
    """For which agent a token speaks, how far it reaches, and the model that answers, if one is set."""

    agent: str
    scope: Literal["read", "write", "admin"]
    model: str | None


class ChangedMemoryDict(TypedDict):
    """A step of a memory's life that was taken, and its words in short."""

    memory_id: str
    event: str
    before: str
    after: str
    because: str
    micro: str


class Client(DaemonConnection):
    """One agent's mind, over HTTP. It is closed at the end of `async with`.

    A verb raises what the daemon answers as the same failure that it is there, and BusyError or DatabaseError when it
    is out of reach for longer than a few attempts take. `agent` is for the operator's token alone.
    """

    async def remember(
        self, content: str, *, key: str | None = None, **more: str | float | datetime | None
    ) -> RememberDict:
        """Keeps a fact; `more` may name subject, attribute, confidence, importance, at and until."""
        return await self.post("/v1/memories", {"content": content, **more}, key=key)

    async def recall(self, text: str, *, limit: int = 10, kinds: Sequence[str] | None = None) -> RecallDict:
        return await self.post("/v1/recall", {"text": text, "limit": limit, "kinds": kinds})

    async def context(self, input_: str, *, tokens: int | None = None, **more: object) -> ContextDict:
        """The context for an input; `more` are the other fields of `POST /v1/context`."""
        return await self.post("/v1/context", {"input": input_, "tokens": tokens, **more})

    async def expand(self, memory_id: IdLike) -> dict[str, Any]:
        """A memory in full."""
        return await self.get(f"/v1/memories/{memory_id}")

    async def confirm(self, memory_id: IdLike, *, key: str | None = None) -> bool:
        """Says that a fact is so; whether that counted."""
        return (await self.post(f"/v1/memories/{memory_id}/confirm", key=key))["counted"]

    async def supersede(self, memory_id: IdLike, content: str, *, key: str | None = None) -> str:
        """Puts a statement in the place of a fact; the id of it."""
        said = await self.post(f"/v1/memories/{memory_id}/supersede", {"content": content}, key=key)
        return said["superseded_by"]

    async def retract(self, memory_id: IdLike, *, key: str | None = None) -> None:
        """Says that a fact was never so."""
        await self.post(f"/v1/memories/{memory_id}/retract", key=key)

    async def forget(self, memory_id: IdLike, *, derived: bool = False, because: str = "asked for") -> list[str]:
        """Forgets a memory for good; the ids of all that went."""
        asked = {"confirm": "forget", "derived": derived, "because": because}
        said = await self.request("DELETE", f"/v1/memories/{memory_id}", asked=asked, key=str(uuid4()))
        return said.json()["forgotten"]

    async def append_messages(
        self, session: str, messages: Sequence[MessageDict], *, key: str | None = None
    ) -> list[int]:
        """Adds lines to a session; the places of those that are new."""
        path = f"{session_path(session)}/messages"
        return (await self.post(path, {"messages": messages}, key=key))["positions"]

    async def get_session_view(self, session: str, *, most: int | None = None) -> dict[str, Any]:
        """What a model would be sent of a session now."""
        return await self.get(f"{session_path(session)}/view", {"most": most} if most else None)

    async def run_turn(self, session: str, text: str, **more: object) -> AsyncGenerator[TurnEvent]:
        """Says something in a session, which begins with it if it is new: the reply in pieces, then the answer; `more`
        are the other fields of `POST /v1/sessions/{session}/turns`.

        Closed early it keeps what had come until then. It is sent once, since what breaks off is in the session too.
        """
        path, ended = f"{session_path(session)}/turns", False
        try:
            async with self.stream("POST", path, body={"text": text, **more}) as steps:
                async for one in steps:
                    if one.type == "problem":
                        raise error_from_problem(one.data)
                    ended = one.type == "answer"
                    yield TurnEvent(one.type, dict(one.data))
        except httpx2.ConnectError as error:
            raise self.unreachable_error(error) from error
        except httpx2.TransportError as error:
            raise CONNECTION_LOST from error
        if not ended:
            raise CONNECTION_LOST

    async def close_session(self, session: str) -> None:
        """Says that a conversation is over: what was said in it becomes an episode."""
        await self.post(f"{session_path(session)}/close")

    async def get_token_info(self) -> TokenInfoDict:
        """For whom the token speaks."""
        told = await self.get("/v1/agent")
        with expect_newton_response():
            return TokenInfoDict(agent=told["agent"], scope=told["scope"], model=told["model"])

    async def process_pending(self, since: datetime | str) -> list[ChangedMemoryDict]:
        """Has what was written seen to at once, which else follows by itself; what changed in memories since then."""
        return await self.post("/v1/memories/settle", {"since": since})

    async def explain_memory(self, bundle_id: IdLike, item: str) -> dict[str, Any]:
        """Why a memory is in a context, or is not: by its number there, its id, its ref or words of its text."""
        return await self.get(f"/v1/bundles/{bundle_id}/why", {"item": item})

    async def accept_proposal(self, tenet_id: IdLike) -> list[str]:
        """Says yes, as a person, to what is to hold always; the ids of the lines whose place it took."""
        return (await self.post(f"/v1/identity/proposals/{tenet_id}/accept"))["instead_of"]

    async def reject_proposal(self, tenet_id: IdLike) -> None:
        """Says no to it."""
        await self.post(f"/v1/identity/proposals/{tenet_id}/reject")

    async def push(self, goal: str, *, session: str | None = None, key: str | None = None) -> TaskChangeDict:
        """Begins a task within the current one."""
        return await self.post("/v1/tasks", {"goal": goal, "session": session}, key=key)

    async def pop(self, result: str = "", *, session: str | None = None, key: str | None = None) -> TaskChangeDict:
        """Ends the current task with its result."""
        return await self.post("/v1/tasks/pop", {"result": result, "session": session}, key=key)

    async def decide(
        self, description: str, *, confidence: float, key: str | None = None, **more: object
    ) -> DecisionDict:
        """Records a decision before it is carried out; `more` are the other fields of `POST /v1/decisions`."""
        given = {"description": description, "confidence": confidence, **more}
        return await self.post("/v1/decisions", given, key=key)

    async def review(self, decision_id: IdLike, outcome: Outcome, *, lesson: str | None = None) -> None:
        """Gives a decision its outcome, once."""
        await self.post(f"/v1/decisions/{decision_id}/review", {"outcome": outcome, "lesson": lesson})

    async def calibration(self) -> dict[str, Any]:
        """How far stated confidence can be trusted."""
        return await self.get("/v1/calibration")

    async def iter_pages(self, path: str, **asked: str | int | bool) -> AsyncGenerator[dict[str, Any]]:
        """Everything of a list that comes in pages, such as `/v1/decisions`."""
        cursor: str | None = None
        while True:
            page = await self.get(path, {**asked, **({"cursor": cursor} if cursor else {})})
            for item in page["items"]:
                yield item
            if (cursor := page["next"]) is None:
                return

    async def events(self, *, after: int | None = None) -> AsyncGenerator[StreamedEvent]:
        """What happens, from now on or behind an event. A connection that breaks is taken up where it was."""
        failures = 0
        while True:
            try:
                shown = {} if after is None else {"Last-Event-ID": str(after)}
                async with self.stream("GET", "/v1/events", shown=shown) as told:
                    async for one in told:
                        after, failures = int(one.id), 0
                        yield StreamedEvent(after, one.type, one.data)
            except httpx2.TransportError as error:
                failures += 1
                if failures >= self.attempts:
                    raise self.unreachable_error(error) from error
            await asyncio.sleep(retry_delay(failures, None))


def session_path(session: str) -> str:
    """Where the session of that name is."""
    return f"/v1/sessions/{quote(session, safe='')}"
