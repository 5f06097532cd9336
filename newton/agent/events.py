"""What happens to an agent is told to who listens, whichever door it came by: events, numbered as they appear."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from newton.db.pool import Tx, before_commit
from newton.db.queries import load

SQL = load("newton.agent", "events.sql")

RETENTION = timedelta(days=7)  # a reader who was away for longer begins anew
CHANNEL = "newton_events"  # on which PostgreSQL says whose events there are more of


class AgentEvent(NamedTuple):
    """An event. The payload says which ids it is about, and nothing that a person said."""

    number: int
    type: str
    created_at: datetime
    payload: Mapping[str, Any]


def publish(type_: str, data: Mapping[str, object], *, agent_id: UUID, now: datetime) -> None:
    """Tells of what the open unit of work does: an event of the type `noun.participle`, if that lands. `about` is JSON
    of ids, numbers and words of ours.

    It is written as the last thing of the unit of work, for other tellers of the agent wait for the end of it.
    """
    payload = json.dumps(data)

    async def write(tx: Tx) -> None:
        await SQL["publish"].execute(
            tx, agent_id=agent_id, type=type_, occurred_at=now, payload=payload, keep_after=now - RETENTION
        )

    before_commit(write)


def clear(*, agent_id: UUID, now: datetime) -> None:
    """Lets go of all that was told, if the open unit of work lands; one event says that it was."""

    async def write(tx: Tx) -> None:
        await SQL["clear"].execute(tx, agent_id=agent_id, cleared_at=now)

    before_commit(write)


async def read_after(tx: Tx, number: int, *, agent_id: UUID, limit: int = 500) -> list[AgentEvent]:
    """Those behind that number, in their order."""
    rows = await SQL["list_after"].fetch_all(tx, agent_id=agent_id, number=number, max_rows=limit)
    return [AgentEvent(row["number"], row["type"], row["at"], json.loads(row["payload"])) for row in rows]


async def get_last_number(tx: Tx, *, agent_id: UUID) -> int:
    """The number of the last event; 0 when there was none."""
    row = await SQL["get_last_number"].fetch_one(tx, agent_id=agent_id)
    assert row is not None
    return row["number"]
