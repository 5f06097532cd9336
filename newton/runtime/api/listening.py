"""Events as they happen: a stream that a reader takes up again where it was left."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from newton.agent import telling
from newton.agent.telling import Told
from newton.errors import ConflictError
from newton.runtime.api.board import Board
from newton.runtime.api.caller import Caller, Reader

router = APIRouter(prefix="/v1", tags=["events"])

BEAT_SECONDS = 5  # who has left is noticed by it; and what was told while nobody heard the database
STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` counts up, `event` is the type, `data` is JSON.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "description": "One event of the stream.",
                    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
                    "required": ["data"],
                },
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
    async with newton.scope.transaction() as tx:
        latest = await telling.latest(tx, agent_id=newton.scope.agent_id)
    if number is None:
        number = latest
    if number > latest:
        raise ConflictError(
            f"There was no event {number} yet; the last one is {latest}.",
            hint="Listen without Last-Event-ID: a backup may have been restored, and much may have changed.",
        )
    return StreamingResponse(_stream(caller, board, number), media_type="text/event-stream")


async def _stream(caller: Caller, board: Board, number: int) -> AsyncGenerator[str]:
    agent_id = caller.newton.scope.agent_id
    yield ": newton\n\n"
    while not board.closed:
        with board.listening(agent_id) as waiting:
            # a reader may leave at any moment, and a unit of work is not to be left in the middle
            found = await asyncio.shield(asyncio.ensure_future(_since(caller, number)))
            woken = bool(found) or found is None or await board.woken(waiting, seconds=BEAT_SECONDS)
        if found is None:
            return
        for told in found:
            yield _written(told)
            number = told.number
        if not woken:
            yield ": beat\n\n"


async def _since(caller: Caller, number: int) -> list[Told] | None:
    """What was told behind that number; None when the token is valid no more."""
    newton = caller.newton
    async with newton.scope.transaction() as tx:
        if not await caller.stands(tx):
            return None
        return await telling.since(tx, number, agent_id=newton.scope.agent_id)


def _written(told: Told) -> str:
    said = json.dumps({"at": told.at.isoformat(), **told.payload}, ensure_ascii=False)
    return f"id: {told.number}\nevent: {told.type}\ndata: {said}\n\n"
