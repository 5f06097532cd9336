"""Procedures as they are used: followed from their folder, activated, judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from newton.agent.telling import tell
from newton.clock import Clock
from newton.content.skills import Skill
from newton.db.pool import Database
from newton.heart import activations, procedures
from newton.heart.activations import Result
from newton.heart.lifecycle.engine import Ground
from newton.heart.lifecycle.thresholds import Thresholds
from newton.heart.procedures import FROM_DISK, Listed, Synced
from newton.memory.memory import Teller
from newton.memory.representations import Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """For one agent; `origin` names the door."""

    agent_id: UUID
    origin: str
    db: Database
    clock: Clock
    count: Count
    thresholds: Thresholds

    async def follow(self, skills: Mapping[str, Skill]) -> Synced:
        """Makes the procedures from disk what the folder says."""
        by = Teller(agent_id=self.agent_id, now=self.clock.now(), origin=FROM_DISK, trust="operator")
        async with self.db.work(self.agent_id) as tx:
            return await procedures.sync(tx, skills, ground=Ground(by=by, thresholds=self.thresholds), count=self.count)

    async def listed(self) -> list[Listed]:
        """Every version of every procedure with its record."""
        async with self.db.work(self.agent_id) as tx:
            return await procedures.listed(tx, agent_id=self.agent_id)

    async def named(self, name: str) -> Listed:
        """The last version of that name. Raises NotFoundError."""
        async with self.db.work(self.agent_id) as tx:
            return await procedures.named(tx, name, agent_id=self.agent_id)

    async def used(self, name: str, result: Result | None) -> None:
        """The procedure was followed; `result` is how that went, if it is known already."""
        ground = self._ground()
        async with self.db.work(self.agent_id) as tx:
            procedure = await procedures.named(tx, name, agent_id=self.agent_id)
            (activation,) = await activations.activate(
                tx, "procedure", [procedure.memory_id], place=self.origin, ground=ground
            )
            if result:
                await activations.judge(
                    tx, "procedure", procedure.memory_id, result, activation=activation, ground=ground
                )
            self._tell("used", procedure, result)

    async def judged(self, name: str, result: Result) -> None:
        """How the last use went that was not judged yet. Raises NotFoundError when there is none."""
        async with self.db.work(self.agent_id) as tx:
            procedure = await procedures.named(tx, name, agent_id=self.agent_id)
            await activations.judge(tx, "procedure", procedure.memory_id, result, ground=self._ground())
            self._tell("judged", procedure, result)

    def _tell(self, what: str, procedure: Listed, result: Result | None) -> None:
        about = {"memory_id": str(procedure.memory_id), "result": result}
        tell(f"procedure.{what}", about, agent_id=self.agent_id, now=self.clock.now())

    def _ground(self) -> Ground:
        by = Teller(agent_id=self.agent_id, now=self.clock.now(), origin=self.origin, trust="user")
        return Ground(by=by, thresholds=self.thresholds)
