"""The report of an agent's growth, read in one unit of work."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from newton.agent.growth import Growth, growth
from newton.brain import retrospect as brain
from newton.clock import Clock
from newton.db.pool import Database
from newton.errors import InputError
from newton.heart import retrospect as heart
from newton.memory.periods import Periods

MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """For one agent."""

    agent_id: UUID
    db: Database
    clock: Clock

    async def weekly(self, weeks: int = 1) -> Growth:
        """The last weeks, beside as many before them. Raises InputError for fewer than one."""
        if not 1 <= weeks * 7 <= MOST_DAYS:
            raise InputError(f"A report of {weeks} weeks is not possible.", hint="Give 1 or more, such as 4.")
        now = self.clock.now()
        return await self._report(now - timedelta(weeks=weeks), now)

    async def since(self, start: datetime) -> Growth:
        """From a moment on, beside as long a time before it. Raises InputError for one that is still to come."""
        now = self.clock.now()
        if not timedelta(0) < now - start <= timedelta(days=MOST_DAYS):
            raise InputError(f"A report since {start:%Y-%m-%d} is not possible.", hint="Give a date that has passed.")
        return await self._report(start, now)

    async def _report(self, start: datetime, now: datetime) -> Growth:
        periods = Periods(start - (now - start), start, now)
        async with self.db.work(self.agent_id) as tx:
            decided = await brain.retrospect(tx, periods, agent_id=self.agent_id)
            lived = await heart.retrospect(tx, periods, agent_id=self.agent_id)
        return growth(periods, decided, lived)
