"""Subscriptions to events within this process. A PostgreSQL notification from any process wakes the subscribers."""

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
    """Wakes the subscribers of this process. Subscribers must also poll: a notification that arrives
    while `listen` does not run is lost."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[UUID, set[asyncio.Future[None]]] = defaultdict(set)
        self.is_closed = False

    async def listen(self, db: Database) -> None:
        """Wake subscribers on each notification until cancelled. Reconnects after a lost connection."""
        while True:
            with suppress(DatabaseError):
                await db.listen(CHANNEL, self._on_notification)
            await asyncio.sleep(RECONNECT_SECONDS)

    def _on_notification(self, agent: str) -> None:
        for agent_id in [UUID(agent)] if agent else list(self._subscribers):
            self.notify(agent_id)

    def notify(self, agent_id: UUID) -> None:
        """Wake the subscribers of the agent."""
        for waiting in self._subscribers.pop(agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def close(self) -> None:
        """Set `is_closed` and wake all subscribers."""
        self.is_closed = True
        for agent_id in list(self._subscribers):
            self.notify(agent_id)

    @contextmanager
    def subscribe(self, agent_id: UUID) -> "Generator[asyncio.Future[None]]":
        """Subscribe for the `with` block. Read the stored events inside it: later events then wake the subscriber."""
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
        """Return whether an event arrived within `seconds`."""
        try:
            await with_timeout(subscription, seconds=seconds)
        except TimeoutError:
            return False
        return True
