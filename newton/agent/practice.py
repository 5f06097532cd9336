"""Procedures as they are used: followed from their folder, activated, judged."""

from collections.abc import Mapping
from dataclasses import dataclass

from newton.agent.scope import AgentScope
from newton.content.skills import Skill
from newton.heart import activations, procedures
from newton.heart.activations import Result
from newton.heart.procedures import FROM_DISK, Listed, Synced


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """For one agent; `origin` names the door."""

    scope: AgentScope

    async def follow(self, skills: Mapping[str, Skill]) -> Synced:
        """Makes the procedures from disk what the folder says."""
        ctx = self.scope.at(FROM_DISK, "operator").write_context()
        async with self.scope.transaction() as tx:
            return await procedures.sync(tx, skills, ctx=ctx)

    async def listed(self) -> list[Listed]:
        """Every version of every procedure with its record."""
        async with self.scope.transaction() as tx:
            return await procedures.listed(tx, agent_id=self.scope.agent_id)

    async def named(self, name: str) -> Listed:
        """The last version of that name. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            return await procedures.named(tx, name, agent_id=self.scope.agent_id)

    async def used(self, name: str, result: Result | None) -> None:
        """The procedure was followed; `result` is how that went, if it is known already."""
        ctx = self.scope.write_context()
        async with self.scope.transaction() as tx:
            procedure = await procedures.named(tx, name, agent_id=self.scope.agent_id)
            (activation,) = await activations.activate(
                tx, "procedure", [procedure.memory_id], place=self.scope.origin, ctx=ctx
            )
            if result:
                await activations.judge(tx, "procedure", procedure.memory_id, result, activation=activation, ctx=ctx)
            self._tell("used", procedure, result)

    async def judged(self, name: str, result: Result) -> None:
        """How the last use went that was not judged yet. Raises NotFoundError when there is none."""
        async with self.scope.transaction() as tx:
            procedure = await procedures.named(tx, name, agent_id=self.scope.agent_id)
            await activations.judge(tx, "procedure", procedure.memory_id, result, ctx=self.scope.write_context())
            self._tell("judged", procedure, result)

    def _tell(self, what: str, procedure: Listed, result: Result | None) -> None:
        about = {"memory_id": str(procedure.memory_id), "result": result}
        self.scope.publish(f"procedure.{what}", about)
