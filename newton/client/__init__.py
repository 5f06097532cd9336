"""Typed client of the HTTP API."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict
from urllib.parse import quote
from uuid import uuid4

import httpx2

from newton.client.connection import (
    CONNECTION_LOST,
    error_from_problem,
    expect_newton_response,
    retry_delay,
)
from newton.client.context import ContextResponse
from newton.client.json_types import IdLike
from newton.client.operations import AgentOperations

Outcome = Literal["success", "partial", "failure"]


class MemoryMentionDict(TypedDict):
    """A memory that a result names."""

    memory_id: str
    text: str


class RememberDict(TypedDict):
    """The id and the status of a stored fact, the facts that it superseded, and current ones that may exclude it.

    `redacted` is the number of secrets that were removed from the text.
    """

    memory_id: str
    status: Literal["new", "confirmed", "unchanged"]
    started_at: str
    replaced: list[MemoryMentionDict]
    contested: list[MemoryMentionDict]
    redacted: int
    warning: str | None


class RecallItemDict(TypedDict):
    """A search result and its score."""

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
    items: list[RecallItemDict]
    missing: dict[str, str]


class DecisionDict(TypedDict):
    """A recorded decision with its precedents and guardrail results."""

    decision_id: str
    is_new: bool
    blocked: bool
    quality: float
    precedents: list[dict[str, Any]]
    guardrails: list[dict[str, str]]


class MessageDict(TypedDict, total=False):
    """A message; role and content are required."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str
    ref: str
    at: str
    calls: list[dict[str, str]]
    answers: str


class EventDict(TypedDict):
    """Something that an agent did, such as `shell_exec` with `{"command": "make test", "exit_code": 0}`."""

    ref: str
    event_type: str
    payload: dict[str, Any]
    at: NotRequired[str]


class TaskChangeDict(TypedDict):
    """The changed task, and the number of the current one."""

    task_id: str
    number: int
    depth: int
    status: Literal["active", "blocked", "complete", "failed"]
    current_number: int | None


class StreamedEvent(NamedTuple):
    """An event of an agent. `Client.events(after=event_id)` continues after it."""

    event_id: int
    type: str
    data: Mapping[str, Any]


class TurnEvent(NamedTuple):
    """A part of a turn: a `delta` with the next `text` of the reply, a `compaction`, or the final `result`."""

    type: str
    data: dict[str, Any]


class TokenInfoDict(TypedDict):
    """The agent and the scope of a token, and the chat model, if one is configured."""

    agent: str
    scope: Literal["read", "write", "admin"]
    model: str | None


class ChangedMemoryDict(TypedDict):
    """A state transition, and the short text of the memory."""

    memory_id: str
    event: str
    from_state: str
    to_state: str
    reason: str
    micro: str


class Client(AgentOperations):
    """HTTP client for the memory of one agent. Use it with `async with`, which closes it.

    Methods raise the error that the daemon reports, as the same class, and OverloadedError or DatabaseError after all
    attempts failed. `agent` selects an agent and needs the token of the operator.
    """

    async def remember(
        self, content: str, *, idempotency_key: str | None = None, **fields: str | float | datetime | None
    ) -> RememberDict:
        """Store a fact. `fields` may contain subject, attribute, confidence, importance, at and until."""
        return await self.post("/v1/memories", {"content": content, **fields}, idempotency_key=idempotency_key)

    async def recall(self, query: str, *, limit: int = 10, kinds: Sequence[str] | None = None) -> RecallDict:
        return await self.post("/v1/recall", {"query": query, "limit": limit, "kinds": kinds})

    async def context(self, input: str, *, max_tokens: int | None = None, **fields: object) -> ContextResponse:
        """Build the context for an input. `fields` are the other fields of `POST /v1/context`."""
        return await self.post("/v1/context", {"input": input, "max_tokens": max_tokens, **fields})

    async def expand(self, memory_id: IdLike, *, offset: int = 0, limit: int | None = None) -> dict[str, Any]:
        """Return a memory in full, or a page of its text of `limit` characters."""
        return await self.get(f"/v1/memories/{memory_id}", {"offset": offset, **({"limit": limit} if limit else {})})

    async def confirm(self, memory_id: IdLike, *, idempotency_key: str | None = None) -> bool:
        """Confirm a fact; return False if it was confirmed today already."""
        return (await self.post(f"/v1/memories/{memory_id}/confirm", idempotency_key=idempotency_key))["counted"]

    async def supersede(self, memory_id: IdLike, content: str, *, idempotency_key: str | None = None) -> str:
        """Replace a fact; return the id of the new one."""
        path = f"/v1/memories/{memory_id}/supersede"
        return (await self.post(path, {"content": content}, idempotency_key=idempotency_key))["superseded_by"]

    async def retract(self, memory_id: IdLike, *, idempotency_key: str | None = None) -> None:
        """Retract a fact that was never true."""
        await self.post(f"/v1/memories/{memory_id}/retract", idempotency_key=idempotency_key)

    async def list_conflicts(self) -> list[dict[str, Any]]:
        """Return pairs of facts that may exclude each other, each with its `newer` and its `older` fact."""
        return (await self.get("/v1/conflicts"))["items"]

    async def settle_conflict(self, memory_id: IdLike, keep: Literal["newer", "older", "both", "same"]) -> None:
        """Settle the conflicts of a fact by the word of a person."""
        await self.post(f"/v1/conflicts/{memory_id}/settle", {"keep": keep})

    async def set_outcome(self, memory_id: IdLike, outcome: str, *, idempotency_key: str | None = None) -> None:
        """Set the outcome of an episode: success, partial or failure."""
        await self.post(f"/v1/memories/{memory_id}/outcome", {"outcome": outcome}, idempotency_key=idempotency_key)

    async def forget(self, memory_id: IdLike, *, include_derived: bool = False, reason: str = "asked for") -> list[str]:
        """Permanently delete a memory; return the ids of all deleted memories."""
        params = {"confirm": "forget", "include_derived": include_derived, "reason": reason}
        path = f"/v1/memories/{memory_id}"
        return (await self.request("DELETE", path, params=params, idempotency_key=str(uuid4()))).json()["items"]

    async def append_messages(
        self,
        session: str,
        messages: Sequence[MessageDict],
        *,
        events: Sequence[EventDict] = (),
        idempotency_key: str | None = None,
    ) -> list[int]:
        """Append messages and events to a session; return the positions of the new messages."""
        path, body = f"{session_path(session)}/messages", {"messages": messages, "events": events}
        return (await self.post(path, body, idempotency_key=idempotency_key))["positions"]

    async def get_session_view(self, session: str, *, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the view of a session that a model would be sent now, of at most `max_tokens` tokens."""
        return await self.get(f"{session_path(session)}/view", {"max_tokens": max_tokens} if max_tokens else None)

    async def run_turn(self, session: str, input: str, **fields: object) -> AsyncGenerator[TurnEvent]:
        """Send a message in a session, which is created if needed; yield the deltas, then the result.

        `fields` are the other fields of `POST /v1/sessions/{session}/turns`. If the generator is closed early, the text
        so far is stored. The request is never retried, because the daemon stores the message at once.
        """
        path, ended = f"{session_path(session)}/turns", False
        try:
            async with self.stream("POST", path, body={"input": input, **fields}) as steps:
                async for event in steps:
                    if event.type == "problem":
                        raise error_from_problem(event.data)
                    ended = event.type == "result"
                    yield TurnEvent(event.type, dict(event.data))
        except httpx2.ConnectError as error:
            raise self.unreachable_error(error) from error
        except httpx2.TransportError as error:
            raise CONNECTION_LOST from error
        if not ended:
            raise CONNECTION_LOST

    async def close_session(self, session: str) -> None:
        """Close a session: its messages become an episode."""
        await self.post(f"{session_path(session)}/close")

    async def get_token_info(self) -> TokenInfoDict:
        """Return the agent and the scope of the token."""
        info = await self.get("/v1/token")
        with expect_newton_response():
            return TokenInfoDict(agent=info["agent"], scope=info["scope"], model=info["model"])

    async def process_pending(self, since: datetime | str) -> list[ChangedMemoryDict]:
        """Index, embed and deduplicate pending memories; return the state transitions since a time."""
        changes = await self.post("/v1/memories/process", {"since": since})
        with expect_newton_response():
            return changes["items"]

    async def explain_memory(self, bundle_id: IdLike, item: str) -> dict[str, Any]:
        """Explain why a memory is in a context or not. `item` is its number, its id, its ref, or words of its text."""
        return await self.get(f"/v1/bundles/{bundle_id}/explain", {"item": item})

    async def accept_proposal(self, line_id: IdLike) -> list[str]:
        """Accept an identity proposal as a person; return the ids of the lines that it replaced."""
        return (await self.post(f"/v1/identity/proposals/{line_id}/accept"))["replaced"]

    async def reject_proposal(self, line_id: IdLike) -> None:
        """Reject an identity proposal."""
        await self.post(f"/v1/identity/proposals/{line_id}/reject")

    async def push(
        self, goal: str, *, session: str | None = None, idempotency_key: str | None = None
    ) -> TaskChangeDict:
        """Start a task inside the current one."""
        return await self.post("/v1/tasks", {"goal": goal, "session": session}, idempotency_key=idempotency_key)

    async def pop(
        self, result: str = "", *, session: str | None = None, idempotency_key: str | None = None
    ) -> TaskChangeDict:
        """Finish the current task with its result."""
        return await self.post("/v1/tasks/pop", {"result": result, "session": session}, idempotency_key=idempotency_key)

    async def decide(
        self, description: str, *, confidence: float, idempotency_key: str | None = None, **fields: object
    ) -> DecisionDict:
        """Record a decision before it is carried out. `fields` are the other fields of `POST /v1/decisions`."""
        body = {"description": description, "confidence": confidence, **fields}
        return await self.post("/v1/decisions", body, idempotency_key=idempotency_key)

    async def review(self, decision_id: IdLike, outcome: Outcome, *, lesson: str | None = None) -> None:
        """Record the outcome of a decision. It can be recorded only once."""
        await self.post(f"/v1/decisions/{decision_id}/review", {"outcome": outcome, "lesson": lesson})

    async def calibration(self) -> dict[str, Any]:
        """Return the calibration report."""
        return await self.get("/v1/calibration")

    async def iter_pages(self, path: str, **params: str | int | bool) -> AsyncGenerator[dict[str, Any]]:
        """Yield the items of all pages of a list such as `/v1/decisions`."""
        cursor: str | None = None
        while True:
            page = await self.get(path, {**params, **({"cursor": cursor} if cursor else {})})
            for item in page["items"]:
                yield item
            if (cursor := page["next"]) is None:
                return

    async def events(self, *, after: int | None = None) -> AsyncGenerator[StreamedEvent]:
        """Stream events, from now on or after the event with the number `after`. Reconnect if the connection breaks."""
        failures = 0
        while True:
            try:
                headers = {} if after is None else {"Last-Event-ID": str(after)}
                async with self.stream("GET", "/v1/events", headers=headers) as stream:
                    async for event in stream:
                        after, failures = int(event.id), 0
                        yield StreamedEvent(after, event.type, event.data)
            except httpx2.TransportError as error:
                failures += 1
                if failures >= self.max_attempts:
                    raise self.unreachable_error(error) from error
            await asyncio.sleep(retry_delay(failures, None))


def session_path(session: str) -> str:
    """Return the path of a session."""
    return f"/v1/sessions/{quote(session, safe='')}"
