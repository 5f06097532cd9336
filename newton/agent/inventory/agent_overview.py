"""Overview of the data of an agent, its activity by day, and deletion of the agent."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.memory.agents import DependentAgent
from newton.memory.memory import Kind

SQL = load("newton.agent.inventory", "agent_overview.sql")


class StateCount(NamedTuple):
    """The number of memories of one kind in one state."""

    kind: Kind
    state: str
    quarantined: bool
    memories: int


async def count_states(tx: Tx, *, agent_id: UUID) -> list[StateCount]:
    """Return the number of memories of each kind in each state."""
    return [StateCount(**one) for one in await SQL["count_states"].fetch_all(tx, agent_id=agent_id)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOverview:
    """The contents of an agent. `size_bytes` is the size of its rows without indexes.

    `dependents` are the agents that store the memories of its users and projects; deleting the agent also deletes them.
    """

    agent_id: UUID
    name: str
    created_at: datetime
    states: Sequence[StateCount]
    sessions: int
    messages: int
    last_activity_at: datetime | None
    size_bytes: int
    dependents: Sequence[DependentAgent]

    @property
    def memories(self) -> int:
        return sum(one.memories for one in self.states)

    @property
    def projects(self) -> int:
        """Return the number of its projects and of those of its users."""
        return sum(one.is_project for one in self.dependents)

    @property
    def users(self) -> int:
        """Return the number of its users with a separate memory."""
        return len(self.dependents) - self.projects

    @property
    def agent_ids(self) -> list[UUID]:
        """Return the ids of all agents that its deletion deletes, its own last."""
        return [*(one.agent_id for one in reversed(self.dependents)), self.agent_id]

    @property
    def token(self) -> str:
        """Return a hash of the agent and its numbers, which confirms the deletion of exactly these contents."""
        parts = [f"{one.kind} {one.state} {one.quarantined} {one.memories}" for one in self.states]
        numbers = (str(self.sessions), str(self.messages), *(one.name for one in self.dependents))
        return hash_preview(str(self.agent_id), str(self.created_at), *parts, *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInventory:
    """Describes and deletes any agent of the database. `scope` is the scope of the agent in use."""

    scope: AgentScope

    async def describe(self, name: str) -> AgentOverview:
        """Return what the agent with this name contains. Raises NotFoundError if there is none."""
        agent_id = derive_agent_id(name)
        async with self.scope.db.transaction(agent_id, snapshot=True) as tx:
            created_at = await agents.get_created_at(tx, agent_id=agent_id)
            if created_at is None:
                raise NotFoundError(f"There is no agent {name!r}.", hint="`newton agents` lists the agents.")
            states = await count_states(tx, agent_id=agent_id)
            row = await SQL["measure"].fetch_one(tx, agent_id=agent_id)
            assert row is not None, "an aggregate has one row"
        return AgentOverview(
            agent_id=agent_id,
            name=name,
            created_at=created_at,
            states=states,
            **row,
            dependents=await agents.list_dependents(self.scope.db, agent_id),
        )

    async def delete(self, name: str, *, token: str) -> AgentOverview:
        """Permanently delete an agent, its access tokens, users and projects; return what the agent contained.

        Each agent is deleted in its own transaction, the named one last, so an interrupted deletion can be repeated.
        Raises NotFoundError for an unknown agent, and ConflictError for the agent in use or a `token` that does not
        match the present overview.
        """
        overview = await self.describe(name)
        if overview.agent_id == self.scope.agent_id:
            hint = f"`newton erase --agent {shlex.quote(name)} --everything` erases the data of the agent."
            raise ConflictError(f"The agent {name} is the one in use and cannot be deleted.", hint=hint)
        verify_preview(token, overview.token)
        for agent_id in overview.agent_ids:
            stored = await agents.read_agent(self.scope.db, agent_id)
            home = stored.parent_id if stored.project and stored.parent_id else agent_id
            async with self.scope.db.transaction(home) as tx:
                if home == agent_id:
                    await agents.delete_agent(tx, agent_id)
                else:
                    await agents.delete_project(tx, agent_id, agent_id=home)
        return overview


class DailyCount(NamedTuple):
    """The number of one day (UTC) for one name, such as a kind of memory."""

    day: date
    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityReport:
    """The memories of an agent now, and its activity by day since `since`, a midnight in UTC.

    `created` counts new memories by kind, `changed` the state changes by the new state, and `tokens` sums the input and
    output tokens of model calls by purpose. A day without activity has no entry.
    """

    since: datetime
    until: datetime
    memories: Sequence[StateCount]
    created: Sequence[DailyCount]
    changed: Sequence[DailyCount]
    tokens: Sequence[DailyCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityService:
    """Reports on the activity of one agent."""

    scope: AgentScope

    async def report(self, days: int) -> ActivityReport:
        """Return the activity of the last `days` days, the present day included."""
        until, agent_id = self.scope.now(), self.scope.agent_id
        since = until.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
        async with self.scope.transaction(snapshot=True) as tx:
            memories = await count_states(tx, agent_id=agent_id)
            created = await SQL["count_created"].fetch_all(tx, agent_id=agent_id, since=since)
            changed = await SQL["count_transitions"].fetch_all(tx, agent_id=agent_id, since=since)
            tokens = await SQL["sum_tokens_by_day"].fetch_all(tx, agent_id=agent_id, since=since)
        return ActivityReport(
            since=since,
            until=until,
            memories=memories,
            created=[DailyCount(**one) for one in created],
            changed=[DailyCount(**one) for one in changed],
            tokens=[DailyCount(**one) for one in tokens],
        )
