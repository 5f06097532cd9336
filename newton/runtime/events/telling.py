"""Events at rest: numbered in the order in which they become visible, so that a reader who resumes misses none."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.runtime.events", "telling.sql")

KEPT = timedelta(days=7)  # a reader who was away for longer begins anew

Payload = Mapping[str, str | int | float | bool | None]


class Told(NamedTuple):
    """An event. The payload says which ids it is about, and nothing that a person said."""

    number: int
    type: str
    at: datetime
    payload: Mapping[str, Any]


async def tell(tx: Tx, type_: str, payload: Payload, *, agent_id: UUID, now: datetime) -> None:
    """Adds an event, as the last thing of its unit of work: other tellers of the agent wait for the end of it."""
    await SQL["alone"].run(tx, agent_id=agent_id)
    await SQL["tell"].run(tx, agent_id=agent_id, type=type_, at=now, payload=json.dumps(payload))


async def since(tx: Tx, number: int, *, agent_id: UUID, most: int = 500) -> list[Told]:
    """Those behind that number, in their order."""
    rows = await SQL["since"].all(tx, agent_id=agent_id, number=number, most=most)
    return [Told(row["number"], row["type"], row["at"], json.loads(row["payload"])) for row in rows]


async def latest(tx: Tx, *, agent_id: UUID) -> int:
    """The number of the last event; 0 when there was none."""
    row = await SQL["latest"].one(tx, agent_id=agent_id)
    assert row is not None
    return row["number"]


async def expire(tx: Tx, *, agent_id: UUID, now: datetime) -> None:
    """Lets go of those that are too old."""
    await SQL["expire"].run(tx, agent_id=agent_id, before=now - KEPT)
