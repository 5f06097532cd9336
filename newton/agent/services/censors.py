"""Censors (rules that forbid something): add, list, approve, relax and retire them, and report wrong matches."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.heart import censors
from newton.heart.censors import CensorChange, CensorRule, CensorSummary
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.lookup import resolve_id


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorService:
    """Adds and changes the censors (rules that forbid something) of one agent. They are identified by id or its end.

    `domains` are the domains of all frames. A censor with another domain would never apply, so it is rejected.
    """

    scope: AgentScope
    domains: frozenset[str] = frozenset()

    async def add(self, rule: CensorRule) -> bool:
        """Add a censor, or change its action from warn to block. Return False if it is in force already.

        Raises ConflictError for a retired one, and InputError for a domain that no frame has.
        """
        censors.validate_domain(rule, self.domains)
        async with self.scope.write() as (tx, ctx):
            changed = await censors.add_rules(tx, [rule], ctx=ctx)
            if not changed and await censors.is_retired(tx, rule, agent_id=ctx.agent_id):
                hint = "Add a rule with a different trigger."
                raise ConflictError(f"The censor {rule.trigger!r} is retired permanently.", hint=hint)
            for memory_id in changed:
                self._publish("added", memory_id)
            return bool(changed)

    async def list_censors(self) -> list[CensorSummary]:
        """Return all censors, each with the count of its matches."""
        async with self.scope.transaction() as tx:
            return await censors.list_censors(tx, agent_id=self.scope.agent_id)

    async def report_false_positive(self, censor_ref: str) -> CensorChange:
        """Record that the last match of a censor was wrong."""
        async with self._censor(censor_ref) as (tx, ctx, memory_id):
            await engine.record_result(tx, "censor", memory_id, "false_positive", ctx=ctx)
            self._publish("false_positive", memory_id)
            return CensorChange(censor_id=memory_id)

    async def relax(self, censor_ref: str, reason: str) -> CensorChange:
        """Change a blocking censor to a warning, and reset its count of matches. Nothing changes if it only warns."""
        async with self._censor(censor_ref) as (tx, ctx, memory_id):
            is_relaxed = await censors.relax(tx, memory_id, reason, ctx=ctx)
            if is_relaxed:
                self.scope.publish("censor.relaxed", {"memory_id": str(memory_id), "reason": reason})
            return CensorChange(censor_id=memory_id, changed=is_relaxed)

    async def approve(self, censor_ref: str) -> CensorChange:
        """Put a proposed censor in force. Nothing changes if it was not waiting for approval."""
        async with self._censor(censor_ref) as (tx, ctx, memory_id):
            approved = await censors.approve(tx, memory_id, ctx=ctx)
            if approved:
                self._publish("approved", memory_id)
            return CensorChange(censor_id=memory_id, changed=approved)

    async def retire(self, censor_ref: str) -> CensorChange:
        """Retire a censor permanently, so that it no longer applies."""
        async with self._censor(censor_ref) as (tx, ctx, memory_id):
            await censors.retire(tx, memory_id, ctx=ctx)
            self._publish("retired", memory_id)
            return CensorChange(censor_id=memory_id)

    @asynccontextmanager
    async def _censor(self, censor_ref: str) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID]]:
        """Open a transaction; yield it with a write context and the full id of the censor.

        Raises InputError for an invalid id, NotFoundError for an unknown one, and ConflictError if several censors
        match.
        """
        async with self.scope.write() as (tx, ctx):
            yield tx, ctx, await resolve_id(tx, censor_ref, agent_id=ctx.agent_id, kind="censor")

    def _publish(self, event: str, memory_id: UUID) -> None:
        self.scope.publish(f"censor.{event}", {"memory_id": str(memory_id)})
