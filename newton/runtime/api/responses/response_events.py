"""The response object of the Responses API, and the events of a stream that build it."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from newton.agent.loop.turn_types import TurnResult
from newton.dialogue.response_store import IncompleteReason, ResponseRecord, ResponseStatus, StoredResponse
from newton.errors import ContextWindowError, NewtonError, RateLimitError, RefusedRequestError
from newton.fault_isolation import run_part
from newton.providers.chat import ReplyDelta
from newton.runtime.api.chat_completions.response_writer import (
    StreamItem,
    build_newton_fields,
    build_usage,
    format_comment,
)
from newton.runtime.api.responses.output_stream import (
    ItemStatus,
    OutputStream,
    ResponseEvent,
    build_call_item,
    build_message_item,
)
from newton.runtime.api.responses.request_models import ResponseRequest, format_item_id, format_response_id

ECHOED_FIELDS = (
    *("instructions", "max_output_tokens", "max_tool_calls", "model", "prompt_cache_key", "safety_identifier"),
    *("service_tier", "temperature", "top_logprobs", "top_p", "user"),
)
PLAIN_TEXT = {"format": {"type": "text"}}
INTERRUPTED = "The reply is incomplete."
# Codes of the protocol by class of error; others are a failure of the server.
ERROR_CODES: tuple[tuple[type[NewtonError], str], ...] = (
    (RateLimitError, "rate_limit_exceeded"),
    (RefusedRequestError, "invalid_prompt"),
    (ContextWindowError, "invalid_prompt"),
)


class ResponseHead(NamedTuple):
    """The id and creation time of a response, the id of the response that it continues, and whether it is stored."""

    response_id: UUID
    created_at: datetime
    previous_id: UUID | None = None
    is_stored: bool = True


class ResponseOutcome(NamedTuple):
    """The final status of a response. `error` has the code and message of a failure, else None."""

    status: ResponseStatus
    incomplete_reason: IncompleteReason | None = None
    error: Mapping[str, str] | None = None

    @property
    def item_status(self) -> ItemStatus:
        return "completed" if self.status == "completed" else "incomplete"


def judge_result(result: TurnResult) -> ResponseOutcome:
    """Return the final status of the response for a turn that ended without an exception."""
    server_finish = result.replies[-1].server_finish if result.replies else None
    if result.forbidden or (server_finish == "content_filter" and not result.quoted):
        return ResponseOutcome("incomplete", "content_filter")
    if result.calls or result.quoted or result.finish == "stop":
        return ResponseOutcome("completed")
    if result.finish == "length":
        return ResponseOutcome("incomplete", "max_output_tokens")
    return ResponseOutcome("failed", error={"code": "server_error", "message": result.degraded or INTERRUPTED})


def to_failure(error: NewtonError) -> ResponseOutcome:
    """Return the status "failed" with the error that the turn raised."""
    code = next((code for kind, code in ERROR_CODES if isinstance(error, kind)), "server_error")
    return ResponseOutcome("failed", error={"code": code, "message": f"{error.what} {error.hint}"})


def build_response(
    body: ResponseRequest, head: ResponseHead, output: Sequence[Mapping[str, Any]], outcome: ResponseOutcome | None
) -> dict[str, Any]:
    """Return the response object of the API, without token usage. None as `outcome` is the status "in_progress"."""
    return {
        **_build_common(head, output, outcome),
        **{name: getattr(body, name) for name in ECHOED_FIELDS},
        "metadata": body.metadata or {},
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "reasoning": {"effort": None, "summary": None, **(body.reasoning.model_dump() if body.reasoning else {})},
        "store": head.is_stored,
        "text": {**PLAIN_TEXT, **(body.text.model_dump(exclude_none=True) if body.text else {})},
        "tool_choice": body.tool_choice or "auto",
        "tools": [{"parameters": None, "strict": None, **tool.model_dump()} for tool in body.tools or ()],
        "truncation": body.truncation or "disabled",
    }


def build_stored_response(stored: StoredResponse) -> dict[str, Any]:
    """Return the response object of the API for a stored response.

    Instructions and tools are missing, because they are not stored.
    """
    record = stored.record
    outcome = ResponseOutcome(record.status, record.incomplete_reason)
    if record.status == "failed":
        outcome = outcome._replace(error={"code": "server_error", "message": INTERRUPTED})
    message_id = format_item_id("msg", record.response_id, 0)
    message = [build_message_item(stored.text, message_id, outcome.item_status)] if stored.text else []
    calls = [
        build_call_item(call, format_item_id("fc", record.response_id, number))
        for number, call in enumerate(stored.calls)
    ]
    head = ResponseHead(record.response_id, record.created_at, record.previous_id)
    return {
        **_build_common(head, [*message, *calls], outcome),
        **dict.fromkeys(ECHOED_FIELDS),
        "completed_at": int(record.completed_at.timestamp()) if record.status == "completed" else None,
        "metadata": record.metadata,
        "model": record.model,
        "parallel_tool_calls": True,
        "reasoning": {"effort": None, "summary": None},
        "store": True,
        "text": PLAIN_TEXT,
        "tool_choice": "auto",
        "tools": [],
        "truncation": "disabled",
        "usage": record.usage,
    }


def build_response_usage(result: TurnResult) -> dict[str, Any]:
    """Return the token usage of a turn. Details that the model server does not report are 0."""
    usage: Mapping[str, Any] = build_usage(result)
    read, written = usage.get("prompt_tokens_details", {}), usage.get("completion_tokens_details", {})
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": {name: read.get(name, 0) for name in ("cached_tokens", "cache_write_tokens")},
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": written.get("reasoning_tokens", 0)},
        "total_tokens": usage["total_tokens"],
    }


def to_record(response: Mapping[str, Any], head: ResponseHead, *, completed_at: datetime) -> ResponseRecord:
    """Return the fields of a finished response that are stored."""
    details = response["incomplete_details"]
    return ResponseRecord(
        response_id=head.response_id,
        previous_id=head.previous_id,
        model=response["model"],
        status=response["status"],
        incomplete_reason=details and details["reason"],
        usage=response["usage"],
        metadata=response["metadata"],
        created_at=head.created_at,
        completed_at=completed_at,
    )


def _build_common(
    head: ResponseHead, output: Sequence[Mapping[str, Any]], outcome: ResponseOutcome | None
) -> dict[str, Any]:
    return {
        "id": format_response_id(head.response_id),
        "object": "response",
        "created_at": int(head.created_at.timestamp()),
        "completed_at": None,
        "status": outcome.status if outcome else "in_progress",
        "background": False,
        "error": outcome.error if outcome else None,
        "incomplete_details": {"reason": outcome.incomplete_reason} if outcome and outcome.incomplete_reason else None,
        "output": list(output),
        "previous_response_id": head.previous_id and format_response_id(head.previous_id),
        "usage": None,
    }


@dataclass(slots=True, kw_only=True)
class EventWriter:
    """A writer of one response of the Responses API, as one JSON object or as a stream of events.

    `store` is called before the client gets the completed response; None if the response is not to be stored.
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
        """Return the response as one JSON object; None if `pieces` end without a result: the client has left."""
        response: dict[str, Any] | None = None
        async with aclosing(pieces):
            async for piece in pieces:
                for event in await self._add_item(piece):
                    response = event.get("response", response)
        return response

    async def stream_events(self, pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[str]:
        """Yield the response as server-sent events: a comment at once, and at the end an error of the turn, if any."""
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
