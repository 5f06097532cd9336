"""The store of responses by idempotency key.

A write request locks its key and stores its response in one transaction.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InProgressError

SQL = load("newton.runtime.idempotency", "store.sql")

RETENTION = timedelta(hours=24)


class IdempotentResponse(NamedTuple):
    """A stored response: HTTP status and JSON text.

    It must not contain user text, because erasure does not delete it.
    """

    status: int
    text: str


class IdempotentRequest(NamedTuple):
    """A write request with an idempotency key. `request_hash` is the SHA-256 of its method, URL and body."""

    agent_id: UUID
    key: str
    request_hash: bytes


async def claim(tx: Tx, request: IdempotentRequest, *, now: datetime) -> IdempotentResponse | None:
    """Return the stored response of a request; if there is none, lock its key until the transaction ends and return
    None.

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
    """Store the response for `RETENTION`, and delete the agent's responses that have expired."""
    await SQL["delete_expired"].execute(tx, agent_id=request.agent_id, before=now - RETENTION)
    row = {**request._asdict(), "status_code": response.status, "response_body": response.text, "created_at": now}
    await SQL["insert_response"].execute(tx, **row)
