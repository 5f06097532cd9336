"""Answers by the key of their request. A key is claimed, and its answer kept, in the unit of work of the effect."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import AtWorkError, ConflictError

SQL = load("newton.runtime.answers", "kept.sql")

KEPT = timedelta(hours=24)


class Answer(NamedTuple):
    """What was answered: a status and JSON text. It holds no words of a person, for forgetting does not look here."""

    status: int
    text: str


class Asked(NamedTuple):
    """A request that may come again: whose, under which key, and the SHA-256 of all it says."""

    agent_id: UUID
    key: str
    request: bytes


async def claim(tx: Tx, asked: Asked, *, now: datetime) -> Answer | None:
    """The answer that the request was given before; None when it is to be done now, by nobody else until the end of
    this unit of work.

    Raises ConflictError when the key came with another request, and AtWorkError while one of the key is at work.
    """
    row = await SQL["try_lock"].one(tx, agent_id=asked.agent_id, key=asked.key)
    if row is None or not row["alone"]:
        raise AtWorkError("A request with this Idempotency-Key is at work.", hint="Send it again in a moment.")
    return await find(tx, asked, now=now)


async def find(tx: Tx, asked: Asked, *, now: datetime) -> Answer | None:
    """The answer that the request was given before. Raises ConflictError when the key came with another request."""
    row = await SQL["find_response"].one(tx, agent_id=asked.agent_id, key=asked.key, since=now - KEPT)
    if row is None:
        return None
    if row["request"] != asked.request:
        raise ConflictError(
            "This Idempotency-Key came with another request before.", hint="Make a new key for each thing to be done."
        )
    return Answer(row["status"], row["answer"])


async def keep(tx: Tx, asked: Asked, answer: Answer, *, now: datetime) -> None:
    """Keeps the answer for a day, and lets go of the agent's older ones."""
    await SQL["delete_expired"].run(tx, agent_id=asked.agent_id, before=now - KEPT)
    given = {"status_code": answer.status, "response_body": answer.text, "created_at": now}
    await SQL["insert_response"].run(tx, agent_id=asked.agent_id, key=asked.key, request_hash=asked.request, **given)
