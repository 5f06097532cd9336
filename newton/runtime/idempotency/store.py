"""Stored responses by idempotency key. The transaction of the write request locks the key and stores the response."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InProgressError

SQL = load("newton.runtime.idempotency", "store.sql")

RETENTION = timedelta(hours=24)


class IdempotentResponse(NamedTuple):
    """A stored response: status and JSON text. It must not contain user text, because erasure does not cover it."""

    status: int
    text: str


class IdempotentRequest(NamedTuple):
    """A request with an idempotency key. `request_hash` is the SHA-256 of its content."""

    agent_id: UUID
    key: str
    request_hash: bytes


async def claim(tx: Tx, request: IdempotentRequest, *, now: datetime) -> IdempotentResponse | None:
    """Return the stored response of the request, or None after locking the key until the transaction ends.

    Raises ConflictError when the key was used with another request, and InProgressError while it is locked.
    """
    row = await SQL["try_lock"].fetch_one(tx, agent_id=request.agent_id, key=request.key)
    if row is None or not row["alone"]:
        raise InProgressError("A request with this Idempotency-Key is in progress.", hint="Retry in a moment.")
    return await find_response(tx, request, now=now)


async def find_response(tx: Tx, request: IdempotentRequest, *, now: datetime) -> IdempotentResponse | None:
    """Return the stored response. Raises ConflictError when the key was used with another request."""
    row = await SQL["find_response"].fetch_one(tx, agent_id=request.agent_id, key=request.key, since=now - RETENTION)
    if row is None:
        return None
    if row["request_hash"] != request.request_hash:
        raise ConflictError(
            "This Idempotency-Key was used with another request.", hint="Use a new key for each request."
        )
    return IdempotentResponse(row["status_code"], row["response_body"])


async def save_response(tx: Tx, request: IdempotentRequest, response: IdempotentResponse, *, now: datetime) -> None:
    """Store the response for a day, and delete the agent's expired ones."""
    await SQL["delete_expired"].execute(tx, agent_id=request.agent_id, before=now - RETENTION)
    row = {**request._asdict(), "status_code": response.status, "response_body": response.text, "created_at": now}
    await SQL["insert_response"].execute(tx, **row)
