"""Censors of an agent: add, list, approve, rate and retire them."""

from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.errors import ConflictError
from newton.heart import activations, censors
from newton.heart.censors import CensorRule, CensorSummary
from newton.memory.lookup import resolve_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorService:
    """Censors of one agent, named by id or the end of it. `loop.action_gate` applies them."""

    scope: AgentScope

    async def add(self, rule: CensorRule) -> bool:
        """Add a rule, or upgrade it to a block. Return False if it is in force already.

        Raises ConflictError for a retired rule.
        """
        async with self.scope.transaction() as tx:
            changed = await censors.add_rules(tx, [rule], ctx=self.scope.write_context())
            if not changed and await censors.is_retired(tx, rule, agent_id=self.scope.agent_id):
                raise ConflictError(
                    f"The censor {rule.trigger!r} is retired permanently.", hint="Add a rule with a different trigger."
                )
            for memory_id in changed:
                self._publish("added", memory_id)
            return bool(changed)

    async def list_censors(self) -> list[CensorSummary]:
        """Return every censor with its record."""
        async with self.scope.transaction() as tx:
            return await censors.list_censors(tx, agent_id=self.scope.agent_id)

    async def report_false_positive(self, censor_ref: str) -> None:
        """Mark the last activation of a censor as a false positive."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            await activations.record_result(tx, "censor", memory_id, "false_positive", ctx=self.scope.write_context())
            self._publish("false_positive", memory_id)

    async def approve(self, censor_ref: str) -> bool:
        """Put a proposed censor in force. Return False if it was not waiting for approval."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            approved = await censors.approve(tx, memory_id, ctx=self.scope.write_context())
            if approved:
                self._publish("approved", memory_id)
            return approved

    async def retire(self, censor_ref: str) -> None:
        """Retire a censor. Only a person can."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, censor_ref, agent_id=self.scope.agent_id, kind="censor")
            await censors.retire(tx, memory_id, ctx=self.scope.write_context())
            self._publish("retired", memory_id)

    def _publish(self, event: str, memory_id: UUID) -> None:
        self.scope.publish(f"censor.{event}", {"memory_id": str(memory_id)})
