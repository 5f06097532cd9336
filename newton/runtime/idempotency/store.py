"""Answers by the key of their request. A key is claimed, and its answer kept, in the unit of work of the effect."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InProgressError

SQL = load("newton.runtime.idempotency", "store.sql")

RETENTION = timedelta(hours=24)


class StoredResponse(NamedTuple):
    """What was answered: a status and JSON text. It holds no words of a person, for forgetting does not look here."""

    status: int
    text: str


class IdempotentRequest(NamedTuple):
    """A request that may come again: whose, under which key, and the SHA-256 of all it says."""

    agent_id: UUID
    key: str
    request_hash: bytes


async def claim(tx: Tx, request: IdempotentRequest, *, now: datetime) -> StoredResponse | None:
    """The answer that the request was given before; None when it is to be done now, by nobody else until the end of
    this unit of work.

    Raises ConflictError when the key came with another request, and AtWorkError while one of the key is at work.
    """
    row = await SQL["try_lock"].fetch_one(tx, agent_id=request.agent_id, key=request.key)
    if row is None or not row["alone"]:
        raise InProgressError("A request with this Idempotency-Key is at work.", hint="Send it again in a moment.")
    return await find_response(tx, request, now=now)


async def find_response(tx: Tx, request: IdempotentRequest, *, now: datetime) -> StoredResponse | None:
    """The answer that the request was given before. Raises ConflictError when the key came with another request."""
    row = await SQL["find_response"].fetch_one(tx, agent_id=request.agent_id, key=request.key, since=now - RETENTION)
    if row is None:
        return None
    if row["request"] != request.request_hash:
        raise ConflictError(
            "This Idempotency-Key came with another request before.", hint="Make a new key for each thing to be done."
        )
    return StoredResponse(row["status"], row["answer"])


async def save_response(tx: Tx, request: IdempotentRequest, response: StoredResponse, *, now: datetime) -> None:
    """Keeps the answer for a day, and lets go of the agent's older ones."""
    await SQL["delete_expired"].execute(tx, agent_id=request.agent_id, before=now - RETENTION)
    given = {"status_code": response.status, "response_body": response.text, "created_at": now}
    await SQL["insert_response"].execute(
        tx, agent_id=request.agent_id, key=request.key, request_hash=request.request_hash, **given
    )
