"""Conflicts between facts that may contradict each other: list them, and settle them as a person decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from newton.agent.scope import AgentScope
from newton.errors import ForbiddenError, NotFoundError
from newton.heart.facts import conflicts
from newton.heart.facts.conflicts import FactPair, PairPosition, Settlement
from newton.memory.lookup import resolve_id, short_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictService:
    """Settles conflicts between facts of one agent: pairs that may contradict each other.

    A conflict is identified by one of its two facts: by its id or the end of its id.
    """

    scope: AgentScope

    async def list_conflicts(
        self, limit: int = conflicts.MAX_CONFLICTS, *, after: PairPosition | None = None
    ) -> list[FactPair]:
        """Return up to `limit` open conflicts, newest first, after the place `after`."""
        async with self.scope.transaction() as tx:
            return await conflicts.list_conflicts(tx, agent_id=self.scope.agent_id, limit=limit, after=after)

    async def count_conflicts(self) -> int:
        """Return the number of open conflicts."""
        async with self.scope.transaction() as tx:
            return await conflicts.count_conflicts(tx, agent_id=self.scope.agent_id)

    async def settle(self, memory_ref: str, settlement: Settlement, *, by_person: bool = True) -> Sequence[FactPair]:
        """Settle all open conflicts of a fact as `settlement` says (newer, older, both, same); return these conflicts.

        Raises NotFoundError if the fact has none, and ForbiddenError if a model tries to replace a fact that only a
        person may replace.
        """
        async with self.scope.write() as (tx, ctx):
            memory_id = await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)
            pairs = await conflicts.list_conflicts(tx, agent_id=ctx.agent_id, memory_id=memory_id)
            if not pairs:
                hint = "`newton conflicts` lists the open conflicts."
                raise NotFoundError(f"The memory {short_id(memory_id)} has no open conflict.", hint=hint)
            if settlement == "newer" and not by_person and not all(pair.may_be_replaced for pair in pairs):
                hint = f"Ask the person to run: newton conflicts settle {short_id(memory_id)} newer"
                raise ForbiddenError("Only a person may replace a confirmed, core or safety-related fact.", hint=hint)
            for pair in pairs:
                await conflicts.settle(tx, pair, settlement, ctx=ctx)
            self.scope.publish("conflict.settled", {"memory_id": str(memory_id), "settlement": settlement})
            return pairs
