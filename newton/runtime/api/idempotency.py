"""Write requests: the effect, its events and the stored response share one transaction."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from newton.runtime.api.auth import AuthenticatedCaller, RequireScope
from newton.runtime.idempotency import store
from newton.runtime.idempotency.store import IdempotentRequest, StoredResponse
from newton.runtime.jobs import queue
from newton.runtime.wiring import AgentServices

T = TypeVar("T")

JSON = "application/json"
REPLAYED_HEADER = "Idempotency-Replayed"
EMBED_JOB = "embed"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Your idempotency key. Repeated within a day, it returns the stored response and has no second"
        " effect.",
        examples=["8f14e45f-ceea-467f-9d7e-2c1b8e9c1a55"],
    ),
]


ActionWork = Callable[[AgentServices], Awaitable[BaseModel]]  # the stored response must not contain user text


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotentAction:
    """One write request of a caller."""

    caller: AuthenticatedCaller
    request: IdempotentRequest | None
    status: int

    async def run_once(self, work: ActionWork) -> Response:
        """Run `work` in one transaction with its events and the stored response. `work` must not call a model.

        Raises the errors of `work`, and for a repeated key ConflictError or InProgressError.
        """
        newton = self.caller.newton
        async with newton.scope.transaction() as tx:
            now = newton.scope.now()
            if self.request and (known := await store.claim(tx, self.request, now=now)):
                return _to_http_response(known, replayed=True)
            done = await work(newton.within(tx))
            answer = StoredResponse(self.status, done.model_dump_json())
            if self.request:
                await store.save_response(tx, self.request, answer, now=now)
            await queue.enqueue_if_idle(
                tx, EMBED_JOB, agent_id=newton.scope.agent_id
            )  # words are searchable at once, vectors soon
        return _to_http_response(answer)

    async def run_after(
        self, prepare: Callable[[AgentServices], Awaitable[T]], work: Callable[[AgentServices, T], Awaitable[BaseModel]]
    ) -> Response:
        """Run `prepare`, which may call a model, and then `work` with its result. Skips both when the response is
        stored."""
        newton = self.caller.newton
        if self.request and (known := await self._find_response(self.request)):
            return _to_http_response(known, replayed=True)
        thought = await prepare(newton)
        return await self.run_once(lambda within: work(within, thought))

    async def _find_response(self, request: IdempotentRequest) -> StoredResponse | None:
        newton = self.caller.newton
        async with newton.scope.transaction() as tx:
            return await store.find_response(tx, request, now=newton.scope.now())


def _to_http_response(stored: StoredResponse, *, replayed: bool = False) -> Response:
    return Response(
        stored.text, stored.status, headers={REPLAYED_HEADER: "true"} if replayed else None, media_type=JSON
    )


async def _idempotent_request(request: Request, agent_id: UUID, key: str | None) -> IdempotentRequest | None:
    if key is None:
        return None
    where = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return IdempotentRequest(agent_id, key, hashlib.sha256(where + await request.body()).digest())


async def _write_action(
    request: Request, caller: Annotated[AuthenticatedCaller, Depends(RequireScope("write"))], key: IdempotencyKey = None
) -> IdempotentAction:
    return await _build_action(request, caller, key)


async def _admin_action(
    request: Request, caller: Annotated[AuthenticatedCaller, Depends(RequireScope("admin"))], key: IdempotencyKey = None
) -> IdempotentAction:
    return await _build_action(request, caller, key)


async def _build_action(request: Request, caller: AuthenticatedCaller, key: str | None) -> IdempotentAction:
    asked = await _idempotent_request(request, caller.newton.scope.agent_id, key)
    return IdempotentAction(caller=caller, request=asked, status=request.scope["route"].status_code or 200)


WriteAction = Annotated[IdempotentAction, Depends(_write_action)]
AdminAction = Annotated[IdempotentAction, Depends(_admin_action)]
