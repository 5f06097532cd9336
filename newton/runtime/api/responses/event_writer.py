"""The output of a response: one JSON object, or a stream of events."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from newton.agent.loop.turn_types import TurnResult
from newton.dialogue.response_store import ResponseRecord
from newton.errors import NewtonError
from newton.fault_isolation import run_part
from newton.providers.chat import ReplyDelta
from newton.runtime.api.chat_completions.response_writer import StreamItem, build_newton_fields, format_comment
from newton.runtime.api.responses.output_stream import OutputStream, ResponseEvent
from newton.runtime.api.responses.request_models import ResponseRequest
from newton.runtime.api.responses.response_object import (
    ResponseHead,
    ResponseOutcome,
    build_response,
    build_response_usage,
    judge_result,
    to_failure,
    to_record,
)


@dataclass(slots=True, kw_only=True)
class EventWriter:
    """A writer of one response. `store` is None if the response is not to be stored.

    `store` is called before the client gets the completed response.
    """

    body: ResponseRequest
    head: ResponseHead
    now: Callable[[], datetime]
    store: Callable[[ResponseRecord, TurnResult], Awaitable[None]] | None = None
    _output: OutputStream = field(init=False)
    _event_count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        summarizes = bool(self.body.reasoning and self.body.reasoning.summary)
        self._output = OutputStream(self.head.response_id, summarizes_reasoning=summarizes)

    async def build_whole(self, pieces: AsyncGenerator[StreamItem]) -> dict[str, Any] | None:
        """Return the response as one JSON object; None if the client has disconnected."""
        response: dict[str, Any] | None = None
        async with aclosing(pieces):
            async for piece in pieces:
                for event in await self._add_item(piece):
                    response = event.get("response", response)
        return response

    async def stream_events(self, pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[str]:
        """Yield the response as server-sent events; see `TurnWriter.stream_events`."""
        yield format_comment(None)
        begun = build_response(self.body, self.head, [], None)
        yield self._format([{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")])
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    yield self._format(await self._add_item(piece)) or format_comment(piece)
            except NewtonError as error:  # the HTTP status has already been sent
                yield self._format(self._fail(to_failure(error)))

    async def _add_item(self, item: StreamItem) -> list[ResponseEvent]:
        match item:
            case str():
                return list(self._output.add_text(item))
            case ReplyDelta():
                return list(self._output.add_delta(item)) if item.index == 0 else []
            case TurnResult():
                return await self._end(item)
            case _:
                return []

    async def _end(self, result: TurnResult) -> list[ResponseEvent]:
        outcome, completed_at, missing = judge_result(result), self.now(), dict(result.missing)
        events = list(self._output.finish(result.calls, outcome.item_status))
        response = {
            **build_response(self.body, self.head, self._output.items, outcome),
            "completed_at": int(completed_at.timestamp()) if outcome.status == "completed" else None,
            "usage": build_response_usage(result),
            "newton": build_newton_fields(result) | {"missing": missing},
        }
        if self.store:
            storing = self.store(to_record(response, self.head, completed_at=completed_at), result)
            await run_part("stored response", storing, default=None, missing=missing)
        return [*events, {"type": f"response.{outcome.status}", "response": response}]

    def _fail(self, outcome: ResponseOutcome) -> list[ResponseEvent]:
        events = list(self._output.finish((), outcome.item_status))
        response = build_response(self.body, self.head, self._output.items, outcome)
        return [*events, {"type": "response.failed", "response": response}]

    def _format(self, events: Iterable[ResponseEvent]) -> str:
        lines: list[str] = []
        for event in events:
            data = {**event, "sequence_number": self._event_count}
            self._event_count += 1
            lines.append(f"event: {event['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n")
        return "".join(lines)
