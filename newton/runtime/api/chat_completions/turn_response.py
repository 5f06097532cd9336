"""Execution of a turn for a request in OpenAI's format, and its response: one JSON object, or a stream of events."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.turn_status import ProgressEvent
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

    def stream_events(self, pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[str]:
        """Yield the reply as server-sent events: a comment at once, and at the end an event with the turn's error, if
        any.

        Heartbeats and progress become comments.
        """
        ...


async def respond(
    writer: TurnWriter, turn_input: TurnInput, target: TurnTarget, request: Request, *, is_streamed: bool
) -> Response:
    """Run the turn and return its response. Raises the errors of the turn; those of a stream only until it begins.

    A stream begins with the first piece of the reply, or with the first heartbeat if that is earlier. So errors that
    come soon have an HTTP status, and a client waits for no byte longer than that.
    """
    stream = TurnStream[StreamItem]()
    turn_input = replace(turn_input, strategy=target.strategy, deadline=target.caller.turn_deadline)
    turn = target.newton.turn_runner(target.model, origin=ORIGIN, on_event=stream.put).run(turn_input)
    pieces = stream.read_pieces(turn, target.caller, request, is_private=turn_input.private is not None)
    if is_streamed:
        begun = await _read_beginning(pieces)
        return StreamingResponse(writer.stream_events(_resume(begun, pieces)), media_type="text/event-stream")
    response = await writer.build_whole(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)


async def _read_beginning(pieces: AsyncGenerator[StreamItem]) -> list[StreamItem]:
    """Read the items up to the first one that is no progress event; a heartbeat is such an item."""
    items: list[StreamItem] = []
    async for item in pieces:
        items.append(item)
        if not isinstance(item, ProgressEvent):
            break
    return items


async def _resume(items: Sequence[StreamItem], pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[StreamItem]:
    """Yield the items that were read already, and then the other ones."""
    async with aclosing(pieces):
        for item in items:
            yield item
        async for item in pieces:
            yield item
