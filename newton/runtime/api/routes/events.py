"""The endpoint of the event stream. A client resumes the stream with the header Last-Event-ID."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from newton.agent import events
from newton.agent.events import CHANNEL, AgentEvent
from newton.concurrency import with_timeout
from newton.db.pool import Database
from newton.errors import ConflictError, DatabaseError
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.base_models import describe_event_stream

RECONNECT_SECONDS = 2  # pause before a reconnect


class EventBroadcaster:
    """A broadcaster that wakes the subscribers of an agent (the event streams) when an event of it is stored.

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


router = APIRouter(prefix="/v1", tags=["events"])

HEARTBEAT_SECONDS = 5  # also the delay until a disconnect or a missed notification is noticed
STREAM_RESPONSES = describe_event_stream(
    "Server-sent events: `id` counts up, `event` is the type, `data` is JSON.",
    example='id: 7\nevent: memory.remembered\ndata: {"occurred_at": "2026-03-01T09:00:00+00:00"}\n\n',
)

LastEventId = Annotated[
    int | None,
    Header(
        alias="Last-Event-ID",
        ge=0,
        lt=2**63,
        description="The id of the last received event. Default: send only new events.",
    ),
]
AfterQuery = Annotated[
    int | None, Query(ge=0, lt=2**63, description="The same as Last-Event-ID, for clients that cannot send a header.")
]


@router.get("/events", response_class=StreamingResponse, responses=STREAM_RESPONSES)
async def stream_events(
    request: Request, caller: ReadAccess, last_event_id: LastEventId = None, after: AfterQuery = None
) -> StreamingResponse:
    """Stream the events of the agent until the client disconnects. Events are kept for seven days."""
    scope, broadcaster = caller.newton.scope, request.app.state.broadcaster
    number = last_event_id if last_event_id is not None else after
    async with scope.transaction() as tx:
        latest = await events.get_last_number(tx, agent_id=scope.agent_id)
    if number is None:
        number = latest
    if number > latest:
        raise ConflictError(
            f"Event {number} does not exist; the last one is {latest}.",
            hint="A backup may have been restored. Connect without Last-Event-ID, and reload your data.",
        )
    return StreamingResponse(_stream(caller, broadcaster, number), media_type="text/event-stream")


async def _stream(caller: AuthenticatedCaller, broadcaster: EventBroadcaster, number: int) -> AsyncGenerator[str]:
    agent_id = caller.newton.scope.agent_id
    yield ": newton\n\n"
    while not broadcaster.is_closed:
        with broadcaster.subscribe(agent_id) as event:
            # a disconnect must not cancel an open transaction
            found = await asyncio.shield(asyncio.ensure_future(_read_events_after(caller, number)))
            woken = bool(found) or found is None or await broadcaster.wait_for_event(event, seconds=HEARTBEAT_SECONDS)
        if found is None:
            return
        for event in found:
            yield _format_event(event)
            number = event.number
        if not woken:
            yield ": beat\n\n"


async def _read_events_after(caller: AuthenticatedCaller, number: int) -> list[AgentEvent] | None:
    """Return the events after event `number`; None if the token is no longer valid."""
    newton = caller.newton
    if not await caller.is_token_valid():
        return None
    async with newton.scope.transaction() as tx:
        return await events.read_after(tx, number, agent_id=newton.scope.agent_id)


def _format_event(event: AgentEvent) -> str:
    data = json.dumps({"occurred_at": event.created_at.isoformat(), **event.payload}, ensure_ascii=False)
    return f"id: {event.number}\nevent: {event.type}\ndata: {data}\n\n"
