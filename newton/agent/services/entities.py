"""Entities: the people and things an agent knows by name."""

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
        """Return the most salient entities with their salience."""
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            known = await entity_store.list_entities(tx, agent_id=self.scope.agent_id, limit=limit)
        return sorted(((e, e.salience_at(now)) for e in known), key=lambda pair: -pair[1])

    async def find_related_entities(self, name: str, *, depth: int) -> list[ReachedRelation]:
        """Return entities related to `name`, nearest first. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            found = (await entity_store.load_index(tx, agent_id=self.scope.agent_id)).resolve(name)
            if found is None:
                raise NotFoundError(f"There is no entity {name!r}.", hint="`newton entities` lists the names.")
            return await entity_store.find_relations(tx, [found.entity_id], agent_id=self.scope.agent_id, depth=depth)
