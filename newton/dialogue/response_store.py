"""Stored responses of OpenAI's Responses API. Their text is not copied: each refers to a message of a session."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "response_store.sql")

ResponseStatus = Literal["completed", "incomplete", "failed"]
IncompleteReason = Literal["max_output_tokens", "content_filter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRecord:
    """The fields of a response that are stored, except the message to which it refers."""

    response_id: UUID
    previous_id: UUID | None
    model: str
    status: ResponseStatus
    incomplete_reason: IncompleteReason | None
    usage: Mapping[str, object]
    metadata: Mapping[str, str]
    created_at: datetime
    completed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A stored response with the last message of its turn.

    If that message is a reply, `text` and `calls` are its content; else they are empty.
    """

    record: ResponseRecord
    session_id: UUID
    position: int
    ref: str
    text: str
    calls: Sequence[ToolCall]


async def reserve(
    tx: Tx, response_id: UUID, *, previous_id: UUID, session_id: UUID, agent_id: UUID, now: datetime
) -> None:
    """Record that a response continues the response `previous_id` in this session, before it is complete."""
    ids = {"agent_id": agent_id, "response_id": response_id, "previous_id": previous_id, "session_id": session_id}
    await SQL["reserve"].execute(tx, **ids, now=now)


async def is_continued(tx: Tx, response_id: UUID, *, session_id: UUID, agent_id: UUID) -> bool:
    """Return True if another response continues this one in the same session."""
    ids = {"agent_id": agent_id, "previous_id": response_id, "session_id": session_id}
    return await SQL["find_continuation"].fetch_one(tx, **ids) is not None


async def store(
    tx: Tx, record: ResponseRecord, message_refs: Sequence[str], *, session_id: UUID, agent_id: UUID
) -> None:
    """Store a complete response.

    It refers to the last of the messages with the ids `message_refs`; if there is none, to the message from which the
    session branched.
    """
    await SQL["store"].execute(
        tx,
        agent_id=agent_id,
        response_id=record.response_id,
        session_id=session_id,
        refs=list(message_refs),
        response=json.dumps(
            {
                "previous_id": record.previous_id and str(record.previous_id),
                "model": record.model,
                "status": record.status,
                "incomplete_reason": record.incomplete_reason,
                "usage": dict(record.usage),
                "metadata": dict(record.metadata),
                "created_at": record.created_at.isoformat(),
                "completed_at": record.completed_at.isoformat(),
            }
        ),
    )


async def find(tx: Tx, response_ids: Sequence[UUID], *, agent_id: UUID) -> dict[UUID, StoredResponse]:
    """Return the complete responses with these ids, by id."""
    rows = await SQL["find"].fetch_all(tx, agent_id=agent_id, response_ids=list(response_ids))
    return {row["response_id"]: _to_response(row) for row in rows}


async def delete(tx: Tx, response_id: UUID, *, agent_id: UUID) -> bool:
    """Delete a response, but not its messages. Return False if there is no complete response with this id."""
    return await SQL["delete"].fetch_one(tx, agent_id=agent_id, response_id=response_id) is not None


async def get_last_input(tx: Tx, *, session_id: UUID, position: int, agent_id: UUID) -> str:
    """Return the text of the last user message up to `position`; empty if there is none."""
    row = await SQL["get_last_input"].fetch_one(tx, agent_id=agent_id, session_id=session_id, position=position)
    return row["content"] if row else ""


def _to_response(row: Record) -> StoredResponse:
    is_reply = row["role"] == "assistant"
    return StoredResponse(
        record=ResponseRecord(
            **{name: row[name] for name in ("response_id", "previous_id", "model", "status", "incomplete_reason")},
            usage=json.loads(row["usage"]),
            metadata=json.loads(row["metadata"]),
            created_at=row["created_at"],
            completed_at=row["completed_at"],
        ),
        session_id=row["session_id"],
        position=row["position"],
        ref=row["ref"],
        text=row["content"] if is_reply else "",
        calls=[ToolCall(**call) for call in json.loads(row["calls"] or "[]")] if is_reply else [],
    )
