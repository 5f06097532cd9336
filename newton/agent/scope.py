"""The data that all services of an agent share: its id, the database, clock, thresholds, and the caller's trust
tier.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent import events
from newton.agent.storage_quota import NO_QUOTA, StorageQuota
from newton.clock import Clock
from newton.db.pool import Database, NestedDatabase, Tx, visit_agent
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.lifecycle.transition_rules import LifecycleThresholds
from newton.memory.memory import TokenCounter, Trust

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentScope:
    """An agent and its caller, as all services need them.

    `origin` names the interface through which the call came ("cli", "http", "mcp", "job embed"), and `trust` is the
    trust tier of the caller's text. Code sets both; a model never does. `storage` limits what the agent stores.

    If the agent stores the memory of a project, `project` is its name, and `parent_id` the agent whose project it is:
    contexts and searches of the project also read the memory of that agent.
    """

    agent_id: UUID
    db: Database
    clock: Clock
    count_tokens: TokenCounter
    thresholds: LifecycleThresholds
    embedder: "Embedder | None" = None
    origin: str = "system"
    trust: Trust = "user"
    storage: StorageQuota = NO_QUOTA
    project: str | None = None
    parent_id: UUID | None = None

    def at(self, origin: str, trust: Trust | None = None) -> "AgentScope":
        """Return a copy of this scope with another origin and, if given, another trust tier."""
        return replace(self, origin=origin, trust=trust or self.trust)

    def within(self, tx: Tx) -> "AgentScope":
        """Return a copy whose `transaction()` yields the open transaction `tx` and does not commit it."""
        return replace(self, db=NestedDatabase(tx, self.agent_id))

    @property
    def above(self) -> "AgentScope | None":
        """Return the scope of the agent whose project this is; None if it is no project."""
        return replace(self, agent_id=self.parent_id, project=None, parent_id=None) if self.parent_id else None

    async def visit_levels(self, tx: Tx) -> AsyncGenerator[UUID]:
        """Yield the id of the agent and, of a project, then that of the agent above it, whose rows `tx` uses meanwhile.

        `tx` is a transaction of the agent. The loop over it must not be left early.
        """
        yield self.agent_id
        if self.parent_id:
            async with visit_agent(tx, self.parent_id, home=self.agent_id):
                yield self.parent_id

    def now(self) -> datetime:
        return self.clock.now()

    async def reserve_storage(self, *texts: str) -> None:
        """Count texts that are about to be stored. Raises StorageQuotaError if they exceed the agent's quota."""
        await self.storage.reserve(self.db, self.agent_id, sum(map(len, texts)))

    def transaction(self, *, snapshot: bool = False) -> AbstractAsyncContextManager[Tx]:
        """Open a transaction that sees only this agent's rows. See `Database.transaction`."""
        return self.db.transaction(self.agent_id, snapshot=snapshot)

    @asynccontextmanager
    async def write(self, trust: Trust | None = None) -> AsyncGenerator[tuple[Tx, LifecycleContext]]:
        """Open a transaction; yield it with a write context: origin, trust tier and time of what is written."""
        async with self.transaction() as tx:
            yield tx, self.write_context(trust)

    def write_context(self, trust: Trust | None = None) -> LifecycleContext:
        """Return the origin, trust tier and current time for writes. `trust` defaults to the trust of the scope."""
        return LifecycleContext(
            agent_id=self.agent_id,
            now=self.clock.now(),
            origin=self.origin,
            trust=trust or self.trust,
            count_tokens=self.count_tokens,
            thresholds=self.thresholds,
        )

    def publish(self, type_: str, payload: Mapping[str, object]) -> None:
        """Publish an event when the open transaction commits. See `events.publish`."""
        events.publish(type_, payload, agent_id=self.agent_id, now=self.clock.now())
