"""The endpoint of the event stream. A client resumes the stream with the header Last-Event-ID."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from newton.agent import events
from newton.agent.events import AgentEvent
from newton.errors import ConflictError
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.base_models import describe_event_stream
from newton.runtime.api.event_broadcaster import EventBroadcaster

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
