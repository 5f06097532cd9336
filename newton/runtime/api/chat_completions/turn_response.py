"""Execution of a turn for a request in OpenAI's format, and its response: one JSON object, or a stream of events."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.turn_types import TurnInput
from newton.runtime.api.chat_completions.response_writer import TurnPiece
from newton.runtime.api.chat_completions.turn_request import ORIGIN, TurnTarget
from newton.runtime.api.turn_stream import TurnStream

CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected


class TurnWriter(Protocol):
    """Interface of a writer of one reply in a format of OpenAI, such as Chat Completions.

    The reply comes as pieces. None in place of a piece is a heartbeat, which keeps the connection open.
    """

    async def build_whole(self, pieces: AsyncGenerator[TurnPiece | None]) -> Mapping[str, Any] | None:
        """Return the whole reply as one JSON object; None if the client has disconnected."""
        ...

    def stream_events(self, first: TurnPiece | None, pieces: AsyncGenerator[TurnPiece | None]) -> AsyncGenerator[str]:
        """Yield the reply as server-sent events.

        `first` is a piece that the caller has already read from `pieces`.
        """
        ...


async def respond(
    writer: TurnWriter, turn_input: TurnInput, target: TurnTarget, request: Request, *, is_streamed: bool
) -> Response:
    """Run the turn and return its response. Raises the errors of the turn until the first piece of a stream is sent."""
    turn = target.newton.turn_runner(target.model, origin=ORIGIN).run(replace(turn_input, strategy=target.strategy))
    pieces = TurnStream[TurnPiece]().read_pieces(
        turn, target.caller, request, is_private=turn_input.private is not None
    )
    if is_streamed:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_events(first, pieces), media_type="text/event-stream")
    response = await writer.build_whole(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)
