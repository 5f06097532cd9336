"""Who and what the agent knows by name."""

from dataclasses import dataclass

from newton.agent.scope import AgentScope
from newton.errors import NotFoundError
from newton.heart import entities
from newton.heart.entities import Listed, Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquaintance:
    """Of one agent."""

    scope: AgentScope

    async def listed(self, *, most: int) -> list[tuple[Listed, float]]:
        """The most salient, each with its salience."""
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            known = await entities.listed(tx, agent_id=self.scope.agent_id, most=most)
        return sorted(((e, e.salience(now)) for e in known), key=lambda pair: -pair[1])

    async def around(self, name: str, *, depth: int) -> list[Reached]:
        """What belongs to the one of that name, near things first. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            found = (await entities.index(tx, agent_id=self.scope.agent_id)).resolve(name)
            if found is None:
                raise NotFoundError(f"Nothing of the name {name!r} is known.", hint="`newton entities` lists names.")
            return await entities.around(tx, [found.entity_id], agent_id=self.scope.agent_id, depth=depth)
