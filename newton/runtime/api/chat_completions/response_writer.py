"""The response of a chat completion in OpenAI's format: one JSON object, or a stream of chunks."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, TypeAlias, cast

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.turn_status import ProgressEvent, TasksChanged, TurnStatus
from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.dialogue.compaction.progress_events import CompactionCompleted, CompactionFailed, CompactionStarted
from newton.errors import NewtonError
from newton.ids import new_id
from newton.operations.conversations.task_records import draw_changes
from newton.providers.chat import ReplyDelta, ReplyPiece, ToolCall
from newton.runtime.api import problems
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.chat_completions.turn_request import ORIGIN, TurnTarget
from newton.runtime.api.turn_stream import TurnStream

CONSTANT_FIELDS = frozenset({"role", "type", "id", "index", "format", "name"})  # repeated, not continued


def merge_delta(target: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to the message `target`: append texts, merge objects, and merge lists by `index` or extend them.

    >>> message = {"reasoning": "First"}
    >>> merge_delta(message, {"reasoning": ", count.", "role": "assistant"})
    >>> message
    {'reasoning': 'First, count.', 'role': 'assistant'}
    """
    for name, value in delta.items():
        known = target.get(name)
        if isinstance(known, str) and isinstance(value, str) and name not in CONSTANT_FIELDS:
            target[name] = known + value
        elif isinstance(known, dict) and isinstance(value, Mapping):
            merge_delta(cast("dict[str, Any]", known), cast("Mapping[str, Any]", value))
        elif isinstance(value, list):
            target[name] = _merge_list(cast("list[Any]", known or []), cast("list[Any]", value))
        elif value is not None or name not in target:
            target[name] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


def _merge_list(known: list[Any], added: list[Any]) -> list[Any]:
    merged = list(known)
    for item in added:
        index = cast("Mapping[str, Any]", item).get("index") if isinstance(item, Mapping) else None
        same = [one for one in merged if index is not None and one.get("index") == index]
        if same:
            merge_delta(same[0], cast("Mapping[str, Any]", item))
        else:
            merged.append(dict(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else item)
    return merged


StreamItem: TypeAlias = ReplyPiece | TurnResult | ProgressEvent | None  # None is a heartbeat
JSON_OR_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The reply: one JSON object, or server-sent events if `stream` is true.",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
}
PASSED_FINISH_REASONS = ("content_filter", "function_call")  # of the model's server


@dataclass(slots=True)
class _MergedChoice:
    """One reply (a "choice" of OpenAI's format), merged from its deltas."""

    message: dict[str, Any] = field(default_factory=dict[str, Any])
    logprobs: dict[str, Any] = field(default_factory=dict[str, Any])
    finish_reason: str | None = None

    def add(self, delta: ReplyDelta) -> None:
        merge_delta(self.message, delta.delta)
        merge_delta(self.logprobs, delta.logprobs or {})
        self.finish_reason = delta.finish_reason or self.finish_reason


class ResponseWriter:
    """A writer of one chat completion in OpenAI's format."""

    def __init__(self, body: ChatCompletionRequest, *, created_at: datetime) -> None:
        self._body, self._debug_lines, self._has_begun = body, list[str](), False
        self._id, self._created = f"chatcmpl-{new_id().hex}", int(created_at.timestamp())

    def add_debug_lines(self, lines: Sequence[str]) -> None:
        """Add comment lines to write before the next item of a streamed reply."""
        self._debug_lines += lines

    async def build_whole(self, pieces: AsyncGenerator[StreamItem]) -> dict[str, object] | None:
        """Return the whole reply as one JSON object; None if `pieces` end without a result: the client has left."""
        result: TurnResult | None = None
        choices: dict[int, _MergedChoice] = {0: _MergedChoice()}
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, ReplyDelta):
                    choices.setdefault(piece.index, _MergedChoice()).add(piece)
                elif isinstance(piece, TurnResult):
                    result = piece
        if result is None:
            return None
        first = choices.pop(0)
        first.message = {**_message_object(result, first.message), **first.message}
        first.finish_reason = _finish_reason(result)
        listed = [_choice_object(0, first), *(_choice_object(index, choices[index]) for index in sorted(choices))]
        extra = {"usage": build_usage(result), "newton": build_newton_fields(result)}
        return {**self._common_fields("chat.completion"), "choices": listed, **extra, **_server_fields(result)}

    async def stream_events(self, pieces: AsyncGenerator[StreamItem]) -> AsyncGenerator[str]:
        """Yield the reply as server-sent events: a comment at once, the role, the pieces, the finish reason, [DONE].

        An error of the turn becomes an event in place of the finish reason.
        """
        yield format_comment(None)
        async with aclosing(pieces):
            try:
                async for piece in pieces:
                    lines = self._format_item(piece) or [format_comment(piece)]
                    for line in (*self._take_debug_lines(), *lines):
                        yield line
            except NewtonError as error:  # the HTTP status has already been sent
                yield f"data: {problems.to_openai_error(error).model_dump_json()}\n\n"
        yield "data: [DONE]\n\n"

    def _take_debug_lines(self) -> list[str]:
        lines, self._debug_lines = [f"{line}\n\n" for line in self._debug_lines], []
        return lines

    def _format_item(self, item: StreamItem) -> list[str]:
        """Return the events for a piece of the reply or the result; none for a progress event or a heartbeat."""
        match item:
            case str():
                lines = [self._format_chunk({"content": item})]
            case ReplyDelta():
                lines = [self._format_delta(item)]
            case TurnResult():
                lines = self._format_result(item)
            case _:
                return []
        begun = [] if self._has_begun else [self._format_chunk({"role": "assistant", "content": ""})]
        self._has_begun = True
        return [*begun, *lines]

    def _format_result(self, result: TurnResult) -> list[str]:
        lines: list[str] = []
        if result.calls:
            calls = [{"index": index, **_tool_call_object(call)} for index, call in enumerate(result.calls)]
            lines.append(self._format_chunk({"tool_calls": calls}))
        more = {"newton": build_newton_fields(result), **_server_fields(result)}
        lines.append(self._format_chunk({}, finish=_finish_reason(result), **more))
        if self._body.includes_usage:
            lines.append(self._format_event({"choices": [], "usage": build_usage(result)}))
        return lines

    def _format_delta(self, delta: ReplyDelta) -> str:
        choice = {
            "index": delta.index,
            "delta": delta.delta,
            "logprobs": delta.logprobs,
            "finish_reason": delta.finish_reason,
        }
        return self._format_event({"choices": [choice]})

    def _format_chunk(self, delta: dict[str, object], *, finish: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._format_event({"choices": [choice], **more})

    def _format_event(self, fields: dict[str, object]) -> str:
        event = {**self._common_fields("chat.completion.chunk"), **fields}
        return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"

    def _common_fields(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._body.model}


def format_comment(item: StreamItem) -> str:
    """Return a comment line of an event stream, which clients ignore: the progress, or else an empty heartbeat."""
    match item:
        case TurnStatus():
            return f": newton {item.text}\n\n"
        case TasksChanged():
            lines = draw_changes(item.tree)
            return "".join(f": newton {' '.join(line.split())}\n" for line in lines) + "\n"
        case CompactionStarted():
            return f": newton Compacting the conversation: {item.current} of {item.max} tokens …\n\n"
        case CompactionCompleted():
            return f": newton Compacted the conversation: {item.saved} tokens saved.\n\n"
        case CompactionFailed():
            return f": newton Compaction failed: {' '.join(item.error.split())}\n\n"
        case _:
            return ": newton\n\n"


def build_usage(result: TurnResult) -> dict[str, Any]:
    """Return OpenAI's object `usage`: the tokens of all model calls of a turn, with the details that servers report."""
    read, written = result.tokens
    details: dict[str, Counter[str]] = {}
    for reply in result.replies:
        for name, counts in reply.usage_details.items():
            details.setdefault(name, Counter()).update(counts)
    totals = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {**totals, **{name: dict(counts) for name, counts in details.items()}}


def _message_object(result: TurnResult, other_fields: dict[str, Any]) -> dict[str, object]:
    has_other_output = bool(result.calls) or not {"refusal", "audio", "function_call"}.isdisjoint(other_fields)
    message: dict[str, object] = {"role": "assistant", "content": result.text or (None if has_other_output else "")}
    if result.calls:
        message["tool_calls"] = [_tool_call_object(call) for call in result.calls]
    return {"refusal": None, **message}


def _choice_object(index: int, choice: _MergedChoice) -> dict[str, object]:
    message = {"role": "assistant", "content": None, **choice.message}
    if choice.message.get("tool_calls"):
        calls: Sequence[dict[str, Any]] = choice.message["tool_calls"]
        message["tool_calls"] = [{name: one[name] for name in one if name != "index"} for one in calls]
    return {
        "index": index,
        "message": message,
        "logprobs": choice.logprobs or None,
        "finish_reason": choice.finish_reason or "stop",
    }


def _server_fields(result: TurnResult) -> dict[str, object]:
    return dict(result.replies[-1].server_fields) if result.replies else {}


def _tool_call_object(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish_reason(result: TurnResult) -> str:
    if result.forbidden:
        return "content_filter"
    if result.calls:
        return "tool_calls"
    server_finish = result.replies[-1].server_finish if result.replies else None
    if server_finish in PASSED_FINISH_REASONS and not result.quoted:
        return server_finish
    return "length" if result.finish == "length" and not result.quoted else "stop"


def build_newton_fields(result: TurnResult) -> dict[str, object]:
    """Return the fields of `newton`, an object that Newton adds to OpenAI's response."""
    return {
        "degraded": result.degraded,
        "from_memory": result.quoted,
        "bundle_id": str(result.bundle.bundle_id) if result.context and result.is_stored else None,
        "context_tokens": result.bundle.tokens if result.context else 0,
        "remembered": result.is_stored,
        "redacted": result.redacted,
        "learnt": list(result.receipt.learnt),
        "no_longer": list(result.receipt.no_longer),
        "kept_out": list(result.receipt.kept_out),
        "wills": list(result.wills),
        "pending_approvals": result.pending_approvals,
        "missing": dict(result.missing),
        "ui_task": result.private and result.private.ui_task,
    }


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
    """Run the turn and return its response: a stream if `is_streamed`, else JSON. Raises the errors of the turn.

    A stream begins with the first piece of the reply, or with the first heartbeat if that is earlier. An error before
    this is raised, so that it gets an HTTP status; a later one becomes an event of the stream.
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
