"""The events of an agent, numbered in commit order and published to listeners of every interface."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from newton.db.pool import Tx, before_commit
from newton.db.queries import load

SQL = load("newton.agent", "events.sql")

RETENTION = timedelta(days=7)  # a reader that was away longer starts over
CHANNEL = "newton_events"  # NOTIFY payload: the agent with new events


class AgentEvent(NamedTuple):
    """An event. The payload holds ids and numbers, never a person's words."""

    number: int
    type: str
    created_at: datetime
    payload: Mapping[str, Any]


def publish(type_: str, data: Mapping[str, object], *, agent_id: UUID, now: datetime) -> None:
    """Publish an event (`noun.participle`) when the open transaction commits. `data` is JSON.

    It is written last, because it takes the agent's event lock.
    """
    payload = json.dumps(data)

    async def write(tx: Tx) -> None:
        await SQL["publish"].execute(
            tx, agent_id=agent_id, type=type_, occurred_at=now, payload=payload, keep_after=now - RETENTION
        )

    before_commit(write)


def clear(*, agent_id: UUID, now: datetime) -> None:
    """Delete all events of the agent when the open transaction commits; one event records that."""

    async def write(tx: Tx) -> None:
        await SQL["clear"].execute(tx, agent_id=agent_id, cleared_at=now)

    before_commit(write)


async def read_after(tx: Tx, number: int, *, agent_id: UUID, limit: int = 500) -> list[AgentEvent]:
    """Return up to `limit` events after `number`, in order."""
    rows = await SQL["list_after"].fetch_all(tx, agent_id=agent_id, number=number, max_rows=limit)
    return [AgentEvent(row["number"], row["type"], row["at"], json.loads(row["payload"])) for row in rows]


async def get_last_number(tx: Tx, *, agent_id: UUID) -> int:
    """Return the number of the last event; 0 without events."""
    row = await SQL["get_last_number"].fetch_one(tx, agent_id=agent_id)
    assert row is not None
    return row["number"]
