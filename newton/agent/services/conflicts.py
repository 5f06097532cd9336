"""Conflicts between facts that may contradict each other: list them, and settle them as a person decides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from newton.agent.scope import AgentScope
from newton.errors import NotFoundError
from newton.heart.facts import conflicts
from newton.heart.facts.conflicts import FactPair, PairPosition, Settlement
from newton.memory import store
from newton.memory.lookup import resolve_id, short_id
from newton.memory.memory import PERSON_TIERS
from newton.memory.store import MemoryConfirmation


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

    async def list_of(self, memory_ref: str) -> Sequence[FactPair]:
        """Return the open conflicts of a fact. Raises NotFoundError if it has none."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            pairs = await conflicts.list_conflicts(tx, agent_id=self.scope.agent_id, memory_id=memory_id)
        if not pairs:
            hint = "`newton conflicts` lists the open conflicts."
            raise NotFoundError(f"The memory {short_id(memory_id)} has no open conflict.", hint=hint)
        return pairs

    async def settle(self, memory_ref: str, settlement: Settlement) -> Sequence[FactPair]:
        """Settle all open conflicts of a fact as `settlement` says (newer, older, both, same); return these conflicts.

        Raises NotFoundError if the fact has none.
        """
        async with self.scope.write() as (tx, ctx):
            memory_id = await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)
            pairs = await replace(self, scope=self.scope.within(tx)).list_of(memory_ref)
            for pair in pairs:
                if ctx.trust in PERSON_TIERS:  # the person vouches for what stays
                    stays = {"newer": [pair.newer], "older": [pair.older]}.get(settlement, [pair.newer, pair.older])
                    source, ref = f"{ctx.origin} {ctx.now:%Y-%m-%d}", f"settled:{pair.first_id}:{pair.second_id}"
                    confirmed = [MemoryConfirmation(memory_id=one.memory_id, ref=ref, source=source) for one in stays]
                    await store.confirm(tx, confirmed, ctx=ctx)
                await conflicts.settle(tx, pair, settlement, ctx=ctx)
            self.scope.publish("conflict.settled", {"memory_id": str(memory_id), "settlement": settlement})
            return pairs
