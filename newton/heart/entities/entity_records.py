"""The full record of one entity, and the memories that mention it."""

import json
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.entities.entity_store import EntitySummary
from newton.heart.events.event_types import Payload

SQL = load("newton.heart.entities", "entity_records.sql")


async def read_entity(tx: Tx, entity_id: UUID, *, agent_id: UUID) -> tuple[EntitySummary, Payload]:
    """Return an entity and its properties. The entity must exist."""
    row = await SQL["get_entity"].fetch_one(tx, agent_id=agent_id, entity_id=entity_id)
    assert row is not None, "the entity was found in the same transaction"
    fields = dict(row)
    properties: Payload = json.loads(fields.pop("properties"))
    return EntitySummary(**fields), properties


async def list_mentions(tx: Tx, entity_id: UUID, *, agent_id: UUID, limit: int) -> list[UUID]:
    """Return the ids of up to `limit` current memories that mention an entity, latest first."""
    rows = await SQL["list_mentions"].fetch_all(tx, agent_id=agent_id, entity_id=entity_id, max_rows=limit)
    return [row["memory_id"] for row in rows]
