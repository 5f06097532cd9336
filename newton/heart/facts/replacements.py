"""Which facts a fact replaced, and which fact replaced it."""

from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.lookup import MemoryMention

SQL = load("newton.heart.facts", "replacements.sql")


async def list_replaced(tx: Tx, memory_id: UUID, *, since: datetime, agent_id: UUID) -> list[MemoryMention]:
    """Return the facts that were superseded since a time, and that this fact or its original replaced."""
    rows = await SQL["list_replaced"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id, since=since)
    return [MemoryMention(*row) for row in rows]


async def find_replacement(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> MemoryMention | None:
    """Return the fact that replaced a superseded one, or None if it only expired."""
    row = await SQL["find_replacement"].fetch_one(tx, agent_id=agent_id, memory_id=memory_id)
    return None if row is None else MemoryMention(*row)
