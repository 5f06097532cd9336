"""Entities of an agent: named people and things, and their relations."""

from dataclasses import dataclass

from newton.agent.scope import AgentScope
from newton.errors import NotFoundError
from newton.heart.entities import entity_store
from newton.heart.entities.entity_store import EntitySummary, ReachedRelation


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityService:
    """Entities of one agent."""

    scope: AgentScope

    async def list_entities(self, *, limit: int) -> list[tuple[EntitySummary, float]]:
        """List up to `limit` entities with their salience, highest first."""
        async with self.scope.write() as (tx, ctx):
            entities = await entity_store.list_entities(tx, agent_id=ctx.agent_id, limit=limit)
        return sorted(((entity, entity.salience_at(ctx.now)) for entity in entities), key=lambda pair: -pair[1])

    async def find_related_entities(self, name: str, *, depth: int) -> list[ReachedRelation]:
        """Return the entities related to `name` over up to `depth` relations, nearest first. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            found = (await entity_store.load_index(tx, agent_id=self.scope.agent_id)).resolve(name)
            if found is None:
                raise NotFoundError(f"There is no entity {name!r}.", hint="`newton entities` lists the names.")
            return await entity_store.find_relations(tx, [found.entity_id], agent_id=self.scope.agent_id, depth=depth)
