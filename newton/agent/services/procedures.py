"""Procedures of an agent: synchronized from disk, and rated by use."""

from collections.abc import Mapping
from dataclasses import dataclass

from newton.agent.scope import AgentScope
from newton.content.skills import Skill
from newton.heart import activations, procedures
from newton.heart.activations import ActivationResult
from newton.heart.procedures import DISK_ORIGIN, ProcedureVersion, SyncReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureService:
    """Procedures of one agent."""

    scope: AgentScope

    async def sync_from_disk(self, skills: Mapping[str, Skill]) -> SyncReport:
        """Synchronize the stored procedures with the folder."""
        ctx = self.scope.at(DISK_ORIGIN, "operator").write_context()
        async with self.scope.transaction() as tx:
            return await procedures.sync_procedures(tx, skills, ctx=ctx)

    async def list_procedures(self) -> list[ProcedureVersion]:
        """Return every version of every procedure with its record."""
        async with self.scope.transaction() as tx:
            return await procedures.list_versions(tx, agent_id=self.scope.agent_id)

    async def get(self, name: str) -> ProcedureVersion:
        """Return the latest version. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            return await procedures.get_latest(tx, name, agent_id=self.scope.agent_id)

    async def record_use(self, name: str, result: ActivationResult | None) -> None:
        """Record a use, with its result if known."""
        ctx = self.scope.write_context()
        async with self.scope.transaction() as tx:
            procedure = await procedures.get_latest(tx, name, agent_id=self.scope.agent_id)
            (activation,) = await activations.record_activations(
                tx, "procedure", [procedure.memory_id], stage=self.scope.origin, ctx=ctx
            )
            if result:
                await activations.record_result(
                    tx, "procedure", procedure.memory_id, result, activation=activation, ctx=ctx
                )
            self._publish("used", procedure, result)

    async def record_outcome(self, name: str, result: ActivationResult) -> None:
        """Record the result of the last use without one. Raises NotFoundError when there is none."""
        async with self.scope.transaction() as tx:
            procedure = await procedures.get_latest(tx, name, agent_id=self.scope.agent_id)
            await activations.record_result(
                tx, "procedure", procedure.memory_id, result, ctx=self.scope.write_context()
            )
            self._publish("outcome_recorded", procedure, result)

    def _publish(self, event: str, procedure: ProcedureVersion, result: ActivationResult | None) -> None:
        about = {"memory_id": str(procedure.memory_id), "result": result}
        self.scope.publish(f"procedure.{event}", about)
