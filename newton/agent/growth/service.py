"""Growth reports of an agent, each computed from one transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from newton.agent.growth.report import GrowthReport, build_growth_report
from newton.agent.scope import AgentScope
from newton.brain import growth_queries as brain
from newton.errors import InputError
from newton.heart import growth_queries as heart
from newton.memory.times.time_expressions import ReportPeriods

MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthService:
    """Reports on how one agent's decisions and memory developed."""

    scope: AgentScope

    async def report_weeks(self, weeks: int = 1) -> GrowthReport:
        """Report on the last `weeks` weeks, compared with as many weeks before.

        Raises InputError for a number out of range.
        """
        if not 1 <= weeks * 7 <= MAX_DAYS:
            raise InputError(f"A report of {weeks} weeks is not possible.", hint="Give 1 week or more, such as 4.")
        now = self.scope.now()
        return await self._build_report(now - timedelta(weeks=weeks), now)

    async def report_since(self, start: datetime) -> GrowthReport:
        """Report on the time since `start`, compared with a period of equal length before.

        Raises InputError for a future time.
        """
        now = self.scope.now()
        if not timedelta(0) < now - start <= timedelta(days=MAX_DAYS):
            raise InputError(f"A report since {start:%Y-%m-%d} is not possible.", hint="Give a start in the past.")
        return await self._build_report(start, now)

    async def _build_report(self, start: datetime, now: datetime) -> GrowthReport:
        periods = ReportPeriods(start - (now - start), start, now)
        async with self.scope.transaction() as tx:
            decisions = await brain.read_growth(tx, periods, agent_id=self.scope.agent_id)
            memories = await heart.read_growth(tx, periods, agent_id=self.scope.agent_id)
        return build_growth_report(periods, decisions, memories)
