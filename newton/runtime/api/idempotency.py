"""Idempotent write requests: one transaction stores the changes, their events and the response by its key."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple, TypeVar
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InProgressError
from newton.runtime.api.auth import AdminAccess, AuthenticatedCaller, WriteAccess
from newton.runtime.jobs import queue
from newton.runtime.wiring import AgentServices

SQL = load("newton.runtime.api", "idempotency.sql")

RETENTION = timedelta(hours=24)


class IdempotentResponse(NamedTuple):
    """A stored response: HTTP status and JSON text. The erasure of a person does not delete it.

    So it must not contain text of users.
    """

    status: int
    text: str


class IdempotentRequest(NamedTuple):
    """A write request with an idempotency key. `request_hash` is the SHA-256 of its method, URL and body."""

    agent_id: UUID
    key: str
    request_hash: bytes


async def claim(tx: Tx, request: IdempotentRequest, *, now: datetime) -> IdempotentResponse | None:
    """Return the stored response of a request. Without one, lock its key for this transaction and return None.

    Raises ConflictError if another request used the key, and InProgressError while another transaction locks it.
    """
    row = await SQL["try_lock"].fetch_one(tx, agent_id=request.agent_id, key=request.key)
    if row is None or not row["alone"]:
        raise InProgressError(
            "A request with this Idempotency-Key is in progress.", hint="Retry the request in a moment."
        )
    return await find_response(tx, request, now=now)


async def find_response(tx: Tx, request: IdempotentRequest, *, now: datetime) -> IdempotentResponse | None:
    """Return the stored response of a request, or None. Raises ConflictError if another request used the key."""
    row = await SQL["find_response"].fetch_one(tx, agent_id=request.agent_id, key=request.key, since=now - RETENTION)
    if row is None:
        return None
    if row["request_hash"] != request.request_hash:
        raise ConflictError(
            "This Idempotency-Key was used with another request.", hint="Use a new key for each request."
        )
    return IdempotentResponse(row["status_code"], row["response_body"])


async def save_response(tx: Tx, request: IdempotentRequest, response: IdempotentResponse, *, now: datetime) -> None:
    """Store the response of a request for `RETENTION`, and delete the agent's responses that have expired."""
    await SQL["delete_expired"].execute(tx, agent_id=request.agent_id, before=now - RETENTION)
    row = {**request._asdict(), "status_code": response.status, "response_body": response.text, "created_at": now}
    await SQL["insert_response"].execute(tx, **row)


T = TypeVar("T")

REPLAYED_HEADER = "Idempotency-Replayed"
EMBED_JOB = "embed"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="An idempotency key. A request that is repeated with the same key within a day returns the stored"
        " response and has no second effect.",
        examples=["8f14e45f-ceea-467f-9d7e-2c1b8e9c1a55"],
    ),
]


ActionWork = Callable[[AgentServices], Awaitable[BaseModel]]  # the stored response must not contain user text


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentAction:
    """One write request of a caller. `request` is None without an idempotency key; `status` is sent on success."""

    caller: AuthenticatedCaller
    request: IdempotentRequest | None
    status: int

    async def run_once(self, work: ActionWork) -> Response:
        """Call `work` and store its changes, its events and the response in one transaction; return the response.

        If the response of an earlier request with the same idempotency key is stored, return it instead. `work` must
        not call a model. Raises ConflictError if a different request used the key, and InProgressError while this one
        is still answered elsewhere.
        """
        newton = self.caller.newton
        async with newton.scope.transaction() as tx:
            now = newton.scope.now()
            if self.request and (stored := await claim(tx, self.request, now=now)):
                return to_http_response(stored, replayed=True)
            body = await work(newton.within(tx))
            response = IdempotentResponse(self.status, body.model_dump_json())
            if self.request:
                await save_response(tx, self.request, response, now=now)
            # new text is searchable by words at once, and by vectors after this job
            await queue.enqueue_if_idle(tx, EMBED_JOB, agent_id=newton.scope.agent_id)
        return to_http_response(response)

    async def run_after(
        self, prepare: Callable[[AgentServices], Awaitable[T]], work: Callable[[AgentServices, T], Awaitable[BaseModel]]
    ) -> Response:
        """Call `prepare`, which may use a model, outside a transaction; then `work` with its result in a transaction.

        If a response is stored for the idempotency key, return it and call neither. Raises the errors of `run_once`.
        """
        newton = self.caller.newton
        if self.request:
            async with newton.scope.transaction() as tx:
                stored = await find_response(tx, self.request, now=newton.scope.now())
            if stored:
                return to_http_response(stored, replayed=True)
        prepared = await prepare(newton)
        return await self.run_once(lambda joined: work(joined, prepared))


async def hash_request(request: Request) -> bytes:
    """Return the hash of the method, the address and the body of a request."""
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return hashlib.sha256(target + await request.body()).digest()


def to_http_response(stored: IdempotentResponse, *, replayed: bool = False) -> Response:
    headers = {REPLAYED_HEADER: "true"} if replayed else None
    return Response(stored.text, stored.status, headers=headers, media_type="application/json")


def replace_body(response: Response, body: BaseModel) -> Response:
    """Return a copy of the response with another body, which may contain user text because it is not stored."""
    is_replayed = REPLAYED_HEADER in response.headers
    return to_http_response(IdempotentResponse(response.status_code, body.model_dump_json()), replayed=is_replayed)


async def _write_action(request: Request, caller: WriteAccess, key: IdempotencyKey = None) -> IdempotentAction:
    return await _build_action(request, caller, key)


async def _admin_action(request: Request, caller: AdminAccess, key: IdempotencyKey = None) -> IdempotentAction:
    return await _build_action(request, caller, key)


async def _build_action(request: Request, caller: AuthenticatedCaller, key: str | None) -> IdempotentAction:
    keyed = await identify_request(request, caller, key)
    return IdempotentAction(caller=caller, request=keyed, status=request.scope["route"].status_code or 200)


async def identify_request(request: Request, caller: AuthenticatedCaller, key: str | None) -> IdempotentRequest | None:
    """Return the request by its idempotency key; None without one.

    A model neither takes the key of a person nor is given what was answered to one.
    """
    if key is None:
        return None
    owned = f"model {key}" if caller.speaker == "model" else key
    return IdempotentRequest(caller.newton.scope.agent_id, owned, await hash_request(request))


WriteAction = Annotated[IdempotentAction, Depends(_write_action)]
AdminAction = Annotated[IdempotentAction, Depends(_admin_action)]
