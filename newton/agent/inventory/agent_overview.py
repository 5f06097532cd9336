"""Show what an agent holds, and delete it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.memory.memory import Kind

SQL = load("newton.agent.inventory", "agent_overview.sql")


class StateCount(NamedTuple):
    """The number of memories of a kind in a state."""

    kind: Kind
    state: str
    quarantined: bool
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOverview:
    """The contents of an agent. `size_bytes` is that of its rows without indexes.

    `user_agents` are the ids and names of the memories of its users, which are deleted with it.
    """

    agent_id: UUID
    name: str
    created_at: datetime
    states: Sequence[StateCount]
    sessions: int
    messages: int
    last_activity_at: datetime | None
    size_bytes: int
    user_agents: dict[UUID, str]

    @property
    def memories(self) -> int:
        return sum(one.memories for one in self.states)

    @property
    def token(self) -> str:
        """Return a hash of the agent and its numbers: it confirms the deletion of exactly this."""
        parts = [f"{one.kind} {one.state} {one.quarantined} {one.memories}" for one in self.states]
        numbers = (str(self.sessions), str(self.messages), *self.user_agents.values())
        return hash_preview(str(self.agent_id), str(self.created_at), *parts, *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInventory:
    """The agents of a database, for its operator. `scope` is that of any of them."""

    scope: AgentScope

    async def describe(self, name: str) -> AgentOverview:
        """Return what an agent holds. Raises NotFoundError."""
        agent_id = derive_agent_id(name)
        async with self.scope.db.transaction(agent_id, snapshot=True) as tx:
            created_at = await agents.get_created_at(tx, agent_id=agent_id)
            if created_at is None:
                raise NotFoundError(f"There is no agent {name!r}.", hint="`newton agents` lists them.")
            states = await SQL["count_states"].fetch_all(tx, agent_id=agent_id)
            row = await SQL["measure"].fetch_one(tx, agent_id=agent_id)
            assert row is not None, "an aggregate has one row"
        return AgentOverview(
            agent_id=agent_id,
            name=name,
            created_at=created_at,
            states=[StateCount(**one) for one in states],
            **row,
            user_agents=await agents.list_user_agents(self.scope.db, agent_id),
        )

    async def delete(self, name: str, *, token: str) -> AgentOverview:
        """Permanently delete an agent with its tokens and the memories of its users; return what it held.

        Each is deleted in a transaction of its own, the agent last, so that an interrupted deletion can be repeated.
        Raises NotFoundError, ConflictError for the agent of the scope, and ConflictError unless `token` is that of the
        present overview.
        """
        overview = await self.describe(name)
        if overview.agent_id == self.scope.agent_id:
            hint = f"`newton erase --agent {name} --everything` erases its data."
            raise ConflictError(f"The agent {name} is in use here and cannot be deleted.", hint=hint)
        verify_preview(token, overview.token)
        for agent_id in (*overview.user_agents, overview.agent_id):
            async with replace(self.scope, agent_id=agent_id).transaction() as tx:
                await SQL["delete_agent"].execute(tx, agent_id=agent_id)
        return overview
