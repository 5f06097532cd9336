"""Run the turn of a request in a format of OpenAI, and send its reply: whole, or as events while it is generated."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.turn_types import TurnInput
from newton.runtime.api.chat_completions.response_writer import TurnPiece
from newton.runtime.api.chat_completions.turn_request import ORIGIN, TurnTarget
from newton.runtime.api.turn_stream import TurnStream

CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected


class TurnWriter(Protocol):
    """Writes the pieces of a turn in the format of a protocol. A piece of None is a heartbeat."""

    async def build_whole(self, pieces: AsyncGenerator[TurnPiece | None]) -> Mapping[str, Any] | None:
        """Return the whole reply; None when the client has disconnected."""
        ...

    def stream_events(self, first: TurnPiece | None, pieces: AsyncGenerator[TurnPiece | None]) -> AsyncGenerator[str]:
        """Yield the reply as server-sent events, beginning with a piece that has been read already."""
        ...


async def respond(
    writer: TurnWriter, turn_input: TurnInput, target: TurnTarget, request: Request, *, is_streamed: bool
) -> Response:
    """Run the turn and return the response. Raises the errors of the turn before its first piece."""
    turn = target.newton.turn_runner(target.model, origin=ORIGIN).run(turn_input)
    pieces = TurnStream[TurnPiece]().read_pieces(
        turn, target.caller, request, is_private=turn_input.private is not None
    )
    if is_streamed:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_events(first, pieces), media_type="text/event-stream")
    response = await writer.build_whole(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)
