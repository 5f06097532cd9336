"""The broadcaster that wakes the event streams of this process when PostgreSQL notifies it of new events."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager, suppress
from uuid import UUID

from newton.agent.events import CHANNEL
from newton.concurrency import with_timeout
from newton.db.pool import Database
from newton.errors import DatabaseError

RECONNECT_SECONDS = 2  # pause before a reconnect


class EventBroadcaster:
    """A broadcaster that wakes the subscribers of an agent when a new event is stored.

    Subscribers must also poll, because a notification is lost while the database connection is down.
    """

    def __init__(self) -> None:
        self._subscribers: defaultdict[UUID, set[asyncio.Future[None]]] = defaultdict(set)
        self.is_closed = False

    async def listen(self, db: Database) -> None:
        """Wake subscribers on each PostgreSQL notification, until cancelled. Reconnect after a lost connection."""
        while True:
            with suppress(DatabaseError):
                await db.listen(CHANNEL, self._on_notification)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _on_notification(self, agent: str) -> None:
        for agent_id in [UUID(agent)] if agent else list(self._subscribers):
            self.notify(agent_id)

    def notify(self, agent_id: UUID) -> None:
        """Wake all current subscribers of the agent."""
        for waiting in self._subscribers.pop(agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def close(self) -> None:
        """Set `is_closed` and wake all subscribers, so that their streams end."""
        self.is_closed = True
        for agent_id in list(self._subscribers):
            self.notify(agent_id)

    @contextmanager
    def subscribe(self, agent_id: UUID) -> "Generator[asyncio.Future[None]]":
        """Subscribe to the agent's events for the `with` block, and yield a future that the next event resolves.

        Read the stored events inside the block, so that no event is missed between reading and waiting.
        """
        waiting = asyncio.get_running_loop().create_future()
        self._subscribers[agent_id].add(waiting)
        try:
            yield waiting
        finally:
            others = self._subscribers.get(agent_id, set())
            others.discard(waiting)
            if not others:
                self._subscribers.pop(agent_id, None)

    async def wait_for_event(self, subscription: "asyncio.Future[None]", *, seconds: float) -> bool:
        """Wait for the next event and return True; return False if none arrives within `seconds`."""
        try:
            await with_timeout(subscription, seconds=seconds)
        except TimeoutError:
            return False
        return True
