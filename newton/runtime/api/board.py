"""Who listens in this process: they are woken when any process tells something, and asked to leave at its end."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from uuid import UUID

from newton.agent.telling import CHANNEL
from newton.concurrency import within
from newton.db.pool import Database
from newton.errors import DatabaseError

PAUSE_SECONDS = 2  # before a lost connection is made anew


class Board:
    """One for a process. What is told while it does not `hear` is found by looking again."""

    def __init__(self) -> None:
        self._waiting: defaultdict[UUID, set[asyncio.Future[None]]] = defaultdict(set)
        self.closed = False

    async def hear(self, db: Database) -> None:
        """Pokes whoever PostgreSQL says there is something for, in whatever process it was told, until it is
        cancelled. A connection that is lost is made anew."""
        while True:
            with suppress(DatabaseError):
                await db.listen(CHANNEL, self._heard)
            await asyncio.sleep(PAUSE_SECONDS)

    def _heard(self, agent: str) -> None:
        for agent_id in [UUID(agent)] if agent else list(self._waiting):
            self.poke(agent_id)

    def poke(self, agent_id: UUID) -> None:
        """Something was told: whoever waits for that agent looks again."""
        for waiting in self._waiting.pop(agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def close(self) -> None:
        """Everybody leaves."""
        self.closed = True
        for agent_id in list(self._waiting):
            self.poke(agent_id)

    @contextmanager
    def listening(self, agent_id: UUID) -> "Generator[asyncio.Future[None]]":
        """Waits, as long as it lasts. What is told from here on wakes the one who waits, so look for events within."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[agent_id].add(waiting)
        try:
            yield waiting
        finally:
            left = self._waiting.get(agent_id, set())
            left.discard(waiting)
            if not left:
                self._waiting.pop(agent_id, None)

    async def woken(self, waiting: "asyncio.Future[None]", *, seconds: float) -> bool:
        """Whether something was told in that time."""
        try:
            await within(waiting, seconds=seconds)
        except TimeoutError:
            return False
        return True
