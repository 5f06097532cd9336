"""Execution of a turn for a request in OpenAI's format, and its response: one JSON object, or a stream of events."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.turn_types import TurnInput
from newton.runtime.api.chat_completions.response_writer import StreamItem
from newton.runtime.api.chat_completions.turn_request import ORIGIN, TurnTarget
from newton.runtime.api.turn_stream import TurnStream

CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected


class TurnWriter(Protocol):
    """Interface of a writer of one reply in a format of OpenAI, such as Chat Completions.

    The reply comes as pieces, with progress events and heartbeats between them.
    """

    async def build_whole(self, pieces: AsyncGenerator[StreamItem]) -> Mapping[str, Any] | None:
        """Return the whole reply as one JSON object; None if the client has disconnected. Raises the turn's errors."""
        ...

    def stream_events(self, first: StreamItem, pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[str]:
        """Yield the reply as server-sent events: a comment at once, and at the end an event with the turn's error, if
        any.

        `first` is an item that the caller has already read from `pieces`. Heartbeats and progress become comments.
        """
        ...


async def respond(
    writer: TurnWriter, turn_input: TurnInput, target: TurnTarget, request: Request, *, is_streamed: bool
) -> Response:
    """Run the turn and return its response. Raises the errors of the turn; those of a stream only until it begins.

    A stream begins before memory is searched, and after the first heartbeat at the latest.
    """
    stream = TurnStream[StreamItem]()
    turn = target.newton.turn_runner(target.model, origin=ORIGIN, on_event=stream.put).run(turn_input)
    pieces = stream.read_pieces(turn, target.caller, request, is_private=turn_input.private is not None)
    if is_streamed:
        first = await anext(pieces, None)
        return StreamingResponse(writer.stream_events(first, pieces), media_type="text/event-stream")
    response = await writer.build_whole(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)
