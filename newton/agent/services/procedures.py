"""Procedures of an agent: update them from the files on disk, and record their uses and outcomes."""

from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.content.skills import SkillFile, SkillSet
from newton.errors import NotFoundError
from newton.heart import procedures
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import ActivationResult
from newton.heart.procedures import DISK_ORIGIN, ProcedureChange, ProcedureVersion, SyncReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureService:
    """Procedures (known ways to do a task) of one agent."""

    scope: AgentScope

    async def sync_from_disk(self, found: SkillSet) -> SyncReport:
        """Make the stored procedures match those read from disk; report the changes."""
        async with self.scope.at(DISK_ORIGIN, "operator").write() as (tx, ctx):
            return await procedures.sync_procedures(tx, found.skills, unreadable=found.unreadable, ctx=ctx)

    async def list_procedures(self) -> list[ProcedureVersion]:
        """Return all versions of all procedures, each with the counts of its successes and failures."""
        async with self.scope.transaction() as tx:
            return await procedures.list_versions(tx, agent_id=self.scope.agent_id)

    async def get(self, name: str) -> ProcedureVersion:
        """Return the latest version of a procedure. Raises NotFoundError for an unknown name."""
        async with self.scope.transaction() as tx:
            return await procedures.get_latest(tx, name, agent_id=self.scope.agent_id)

    async def put(self, skill: SkillFile) -> bool:
        """Store a skill that a person gives; return False if it is unchanged.

        Raises ConflictError if a file of the operator has this name.
        """
        async with self.scope.write() as (tx, ctx):
            is_new = await procedures.put_procedure(tx, skill, ctx=ctx)
            if is_new:
                self.scope.publish("procedure.added", {})
            return is_new

    async def retire(self, name: str) -> None:
        """Retire a procedure. Raises NotFoundError for an unknown name, and ConflictError for one from a file."""
        async with self.scope.write() as (tx, ctx):
            await procedures.retire_procedure(tx, name, ctx=ctx)
            self.scope.publish("procedure.retired", {})

    async def approve(self, name: str) -> ProcedureChange:
        """Put a proposed procedure in use. Nothing changes if it was not waiting for approval.

        Raises NotFoundError for an unknown name.
        """
        async with self.scope.write() as (tx, ctx):
            is_approved = await procedures.approve_procedure(tx, name, ctx=ctx)
            if is_approved:
                self.scope.publish("procedure.approved", {})
            return ProcedureChange(name=name, changed=is_approved)

    async def dismiss(self, name: str, reason: str | None = None) -> ProcedureChange:
        """Retire a proposed procedure, so that it is not proposed again; the reason is recorded.

        Nothing changes if it was not waiting for approval. Raises NotFoundError for an unknown name.
        """
        async with self.scope.write() as (tx, ctx):
            is_dismissed = await procedures.dismiss_procedure(tx, name, reason, ctx=ctx)
            if is_dismissed:
                self.scope.publish("procedure.dismissed", {})
            return ProcedureChange(name=name, changed=is_dismissed)

    async def record_use(self, name: str, result: ActivationResult | None) -> None:
        """Record a use of a procedure, with its result if known. Raises NotFoundError for an unknown procedure."""
        async with self.scope.write() as (tx, ctx):
            memory_id = (await procedures.get_latest(tx, name, agent_id=ctx.agent_id)).memory_id
            (use_id,) = await engine.record_activations(tx, "procedure", [memory_id], stage=ctx.origin, ctx=ctx)
            if result:
                await engine.record_result(tx, "procedure", memory_id, result, activation=use_id, ctx=ctx)
            self._publish("used", memory_id, result)

    async def record_outcome(self, name: str, result: ActivationResult) -> None:
        """Record the result of the latest use that has none. Raises NotFoundError if there is no such use."""
        async with self.scope.write() as (tx, ctx):
            memory_id = (await procedures.get_latest(tx, name, agent_id=ctx.agent_id)).memory_id
            await engine.record_result(tx, "procedure", memory_id, result, ctx=ctx)
            self._publish("outcome_recorded", memory_id, result)

    async def report(self, name: str, result: ActivationResult | None) -> None:
        """Publish what a model says of the use of a person's procedure, which does not count for its state.

        Raises NotFoundError for an unknown procedure.
        """
        async with self.scope.write() as (tx, ctx):
            self._publish("reported", (await procedures.get_latest(tx, name, agent_id=ctx.agent_id)).memory_id, result)

    async def record_result(self, name: str, result: ActivationResult) -> None:
        """Record the result of the latest use that has none; if there is no such use, record a use with this result.

        Raises NotFoundError for an unknown procedure.
        """
        try:
            await self.record_outcome(name, result)
        except NotFoundError:
            await self.record_use(name, result)

    def _publish(self, event: str, memory_id: UUID, result: ActivationResult | None) -> None:
        self.scope.publish(f"procedure.{event}", {"memory_id": str(memory_id), "result": result})
