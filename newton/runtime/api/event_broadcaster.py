"""Who listens in this process: they are woken when any process tells something, and asked to leave at its end."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from uuid import UUID

from newton.agent.events import CHANNEL
from newton.concurrency import with_timeout
from newton.db.pool import Database
from newton.errors import DatabaseError

RECONNECT_SECONDS = 2  # before a lost connection is made anew


class EventBroadcaster:
    """One for a process. What is told while it does not `hear` is found by looking again."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[UUID, set[asyncio.Future[None]]] = defaultdict(set)
        self.is_closed = False

    async def listen(self, db: Database) -> None:
        """Pokes whoever PostgreSQL says there is something for, in whatever process it was told, until it is
        cancelled. A connection that is lost is made anew."""
        while True:
            with suppress(DatabaseError):
                await db.listen(CHANNEL, self._on_notification)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _on_notification(self, agent: str) -> None:
        for agent_id in [UUID(agent)] if agent else list(self._subscribers):
            self.notify(agent_id)

    def notify(self, agent_id: UUID) -> None:
        """Something was told: whoever waits for that agent looks again."""
        for waiting in self._subscribers.pop(agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def close(self) -> None:
        """Everybody leaves."""
        self.is_closed = True
        for agent_id in list(self._subscribers):
            self.notify(agent_id)

    @contextmanager
    def subscribe(self, agent_id: UUID) -> "Generator[asyncio.Future[None]]":
        """Waits, as long as it lasts. What is told from here on wakes the one who waits, so look for events within."""
        waiting = asyncio.get_running_loop().create_future()
        self._subscribers[agent_id].add(waiting)
        try:
            yield waiting
        finally:
            left = self._subscribers.get(agent_id, set())
            left.discard(waiting)
            if not left:
                self._subscribers.pop(agent_id, None)

    async def wait_for_event(self, subscription: "asyncio.Future[None]", *, seconds: float) -> bool:
        """Whether something was told in that time."""
        try:
            await with_timeout(subscription, seconds=seconds)
        except TimeoutError:
            return False
        return True
