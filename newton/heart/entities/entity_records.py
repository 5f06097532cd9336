"""The full record of one entity, and the memories that mention it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.entities.entity_store import EntityRelation, EntitySummary
from newton.memory.memory import Kind

SQL = load("newton.heart.entities", "entity_records.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """A memory that mentions an entity."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRecord(EntitySummary):
    """An entity with its properties and relations, and the latest memories that mention it."""

    properties: Mapping[str, JsonValue]
    relations: Sequence[EntityRelation]
    mentioned_in: Sequence[EntityMention]


async def read_entity(tx: Tx, entity_id: UUID, *, agent_id: UUID) -> tuple[EntitySummary, dict[str, JsonValue]]:
    """Return an entity and its properties. The entity must exist."""
    row = await SQL["get_entity"].fetch_one(tx, agent_id=agent_id, entity_id=entity_id)
    assert row is not None, "the entity was found in the same transaction"
    fields = dict(row)
    properties: dict[str, JsonValue] = json.loads(fields.pop("properties"))
    return EntitySummary(**fields), properties


async def list_mentions(tx: Tx, entity_id: UUID, *, agent_id: UUID, limit: int) -> list[UUID]:
    """Return the ids of up to `limit` current memories that mention an entity, latest first."""
    rows = await SQL["list_mentions"].fetch_all(tx, agent_id=agent_id, entity_id=entity_id, max_rows=limit)
    return [row["memory_id"] for row in rows]
