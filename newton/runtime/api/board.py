"""Who listens in this process: they are woken when any process tells something, and asked to leave at its end."""

import asyncio
from collections import defaultdict
from contextlib import suppress
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

    def listen(self, agent_id: UUID) -> "asyncio.Future[None]":
        """Begins to wait. What is told from here on wakes the one who waits, so look for events after this."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[agent_id].add(waiting)
        return waiting

    async def woken(self, agent_id: UUID, waiting: "asyncio.Future[None]", *, seconds: float) -> bool:
        """Whether something was told in that time."""
        try:
            await within(waiting, seconds=seconds)
        except TimeoutError:
            return False
        finally:
            self.leave(agent_id, waiting)
        return True

    def leave(self, agent_id: UUID, waiting: "asyncio.Future[None]") -> None:
        """Waits no more."""
        if agent_id in self._waiting:
            self._waiting[agent_id].discard(waiting)
            if not self._waiting[agent_id]:
                del self._waiting[agent_id]
