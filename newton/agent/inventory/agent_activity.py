"""Counts of an agent's memories by kind and state, and by day the new memories, state changes and tokens used."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from newton.agent.inventory.agent_overview import StateCount, count_states
from newton.agent.scope import AgentScope
from newton.db.queries import load

SQL = load("newton.agent.inventory", "agent_activity.sql")


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
