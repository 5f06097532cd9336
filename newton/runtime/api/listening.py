"""Events as they happen: a stream that a reader takes up again where it was left."""

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from newton.runtime.api.caller import Caller, Reader
from newton.runtime.events import telling
from newton.runtime.events.board import Board
from newton.runtime.events.telling import Told

router = APIRouter(prefix="/v1", tags=["events"])

BEAT_SECONDS = 5  # another process may have told something; and who has left is noticed by it
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` counts up, `event` is the type, `data` is JSON.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: 7\nevent: memory.remembered\ndata: {"at": "2026-03-01T09:00:00+00:00"}\n\n',
            }
        },
    }
}

After = Annotated[
    int | None,
    Header(alias="Last-Event-ID", ge=0, lt=2**63, description="The last event that was read; without it, from now on."),
]
From = Annotated[int | None, Query(alias="from", ge=0, lt=2**63, description="The same, for who cannot send a header.")]


@router.get("/events", response_class=StreamingResponse, responses=STREAM)
async def events(request: Request, caller: Reader, last: After = None, start: From = None) -> StreamingResponse:
    """What happens to the agent, for as long as the connection stands. Events are kept for seven days."""
    newton, board = caller.newton, request.app.state.board
    number = last if last is not None else start
    if number is None:
        async with newton.db.work(newton.agent_id) as tx:
            number = await telling.latest(tx, agent_id=newton.agent_id)
    return StreamingResponse(_stream(caller, board, number), media_type="text/event-stream")


async def _stream(caller: Caller, board: Board, number: int) -> AsyncGenerator[str]:
    newton = caller.newton
    yield ": newton\n\n"
    while not board.closed:
        waiting = board.listen(newton.agent_id)
        async with newton.db.work(newton.agent_id) as tx:
            if not await caller.stands(tx):
                return
            found = await telling.since(tx, number, agent_id=newton.agent_id)
        for told in found:
            yield _written(told)
            number = told.number
        if found:
            board.leave(newton.agent_id, waiting)
        elif not await board.woken(newton.agent_id, waiting, seconds=BEAT_SECONDS):
            yield ": beat\n\n"


def _written(told: Told) -> str:
    said = json.dumps({"at": told.at.isoformat(), **told.payload}, ensure_ascii=False)
    return f"id: {told.number}\nevent: {told.type}\ndata: {said}\n\n"
