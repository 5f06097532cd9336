"""Chat model that calls the Chat Completions API, again without a field, or under its other name, if it is refused."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar, cast

import openai
from pydantic import BaseModel

from newton.providers.chat import CallRestart, ChatMessage, ChatReply, ReplyPiece, RequestOptions, to_openai_message
from newton.providers.chat_model_base import UpstreamChat
from newton.providers.model_endpoint import ModelEndpoint
from newton.providers.reply_stream import (
    Completion,
    StartCompletion,
    drop_deltas,
    find_call_extras,
    is_refused_mode,
    start_structured,
    stream_reply,
)
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey

Fields: TypeAlias = Mapping[str, object]
T = TypeVar("T")

# The other name of a field; None for a field that Newton adds and can do without.
SUBSTITUTES: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "stream_options": None,
}
_REFUSALS = (openai.BadRequestError, openai.UnprocessableEntityError)

_learned: dict[EndpointKey, dict[str, str | None]] = {}  # the refused fields by model, as learned by this process


async def send_accepted_fields(send: Callable[[Fields], Awaitable[T]], fields: Fields, *, endpoint: EndpointKey) -> T:
    """Send a request with `send`.

    If the server rejects a field, send it once more without the field or with a substitute. What the server accepted is
    remembered for its next requests. Raises the first rejection if the second request is rejected for a field too.
    """
    fields = _substitute(fields, _learned.get(endpoint, {}))
    try:
        return await send(fields)
    except _REFUSALS as error:
        if (refused := _find_refused_field(error, fields)) is None:
            raise
        refusal = error
    substitute = {refused: SUBSTITUTES[refused]}
    second_fields = _substitute(fields, substitute)
    try:
        result = await send(second_fields)
    except _REFUSALS as error:
        raise refusal if _find_refused_field(error, second_fields) else error from None
    kept = {name: value for name, value in _learned.get(endpoint, {}).items() if value != refused}
    _learned[endpoint] = {**kept, **substitute}
    return result


def _substitute(fields: Fields, substitutes: Mapping[str, str | None]) -> Fields:
    renamed = {substitutes.get(name, name): value for name, value in fields.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def _find_refused_field(error: openai.APIStatusError, fields: Fields) -> str | None:
    """Return the field that the error names, if it has a substitute; else None."""
    names = [name for name in SUBSTITUTES if name in fields]
    named = [name for name in names if error.param == name or re.search(rf"\b{name}\b", error.message)]
    return named[0] if named else None


LIMIT_FIELDS = ("max_completion_tokens", "max_tokens")  # at OpenAI, elsewhere
STREAMED_AUDIO_FORMAT = "pcm16"
_NO_TOOLS_PATTERN = re.compile(r"\btools?\b|tool_choice|jinja|function", re.IGNORECASE)  # no tool support
_NO_OPTIONS = RequestOptions()

_NO_NAMES_PATTERN = re.compile(r"\bmessages?\b.*\bname\b|\bname\b.*\bmessages?\b", re.IGNORECASE | re.DOTALL)

_without_tools: set[EndpointKey] = set()  # models without tool support, as learned by this process
_without_names: set[EndpointKey] = set()  # models without names of speakers


class OpenAIChat(UpstreamChat):
    """A chat model with OpenAI's protocol. A failed call is repeated only before its reply begins."""

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """Stream the pieces of a reply, then a ChatReply with all of it.

        With a `schema`, JSON that matches it is asked for.
        """
        structured = schema and partial(start_structured, schema=schema, start=_start_completion)
        start = structured or partial(_start_with_options, options=_NO_OPTIONS)
        return drop_deltas(self._stream_reply(StreamAccumulator(messages, max_tokens), start))

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        """Stream the pieces of a reply that may have tool calls, then a ChatReply, as `ToolModel.answer` describes."""
        has_own_limit = any(name in options.extra_body for name in LIMIT_FIELDS)
        accumulator = StreamAccumulator(messages, None if has_own_limit else max_tokens)
        start, is_streamed = partial(_start_with_options, options=options), not _needs_whole_response(options)
        return self._stream_reply(accumulator, start, is_streamed=is_streamed)

    async def _stream_reply(
        self, accumulator: StreamAccumulator, start: StartCompletion[Completion], *, is_streamed: bool = True
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        endpoint = await self._open_endpoint()
        async with aclosing(stream_reply(endpoint, accumulator, start, is_streamed=is_streamed)) as pieces:
            async for piece in pieces:
                yield piece


async def _start_with_options(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, deadline: float, *, options: RequestOptions
) -> Completion:
    """Send a request, and return the response or stream.

    Newton's own tools are omitted for a model without tool support.
    """
    without_own = replace(options, own_tools=())
    start_plain = partial(_start_completion, endpoint, accumulator, without_own)
    if not options.own_tools or endpoint.key in _without_tools:
        return await endpoint.call(start_plain, deadline=deadline)
    try:
        start_with_tools = partial(_start_completion, endpoint, accumulator, options)
        return await endpoint.call(start_with_tools, deadline=deadline)
    except openai.APIStatusError as error:
        if options.tools or not is_refused_mode(error) or not _NO_TOOLS_PATTERN.search(error.message):
            raise
    completion = await endpoint.call(start_plain, deadline=deadline)
    _without_tools.add(endpoint.key)
    return completion


async def _start_completion(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions
) -> Completion:
    """Start a request. If the server rejects names of speakers, they are sent in the texts of the messages."""
    has_names = any(message.name for message in accumulator.messages) and endpoint.key not in _without_names
    try:
        return await _send_request(endpoint, accumulator, options)
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        if not has_names or not _NO_NAMES_PATTERN.search(f"{error.param} {error.message}"):
            raise
    _without_names.add(endpoint.key)
    return await _send_request(endpoint, accumulator, options)


async def _send_request(endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions) -> Completion:
    create = endpoint.client.chat.completions.create

    async def send(fields: Fields) -> Completion:
        if _needs_whole_response(options):
            return await create(model=endpoint.model, messages=[], extra_body=dict(fields))
        chunks = await create(model=endpoint.model, messages=[], stream=True, extra_body=dict(fields))
        return cast("openai.AsyncStream[object]", chunks)

    return await send_accepted_fields(send, _build_fields(endpoint, accumulator, options), endpoint=endpoint.key)


def _build_fields(endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions) -> Fields:
    """Return the fields of the request except the model. The caller's fields are passed unchanged."""
    fields: dict[str, object] = dict(options.extra_body)
    fields["messages"] = [_build_message(endpoint, message) for message in accumulator.messages]
    if options.all_tools:
        fields["tools"] = [{"type": "function", "function": tool.function} for tool in options.all_tools]
    if accumulator.max_tokens is not None:
        fields[LIMIT_FIELDS[not endpoint.upstream.is_provider_itself]] = accumulator.max_tokens
    if _needs_whole_response(options):
        fields.pop("stream_options", None)
        return fields
    stream_options = cast("dict[str, object]", options.extra_body.get("stream_options") or {})
    return {**fields, "stream_options": {**stream_options, "include_usage": True}}


def _build_message(endpoint: ModelEndpoint, message: ChatMessage) -> dict[str, object]:
    """Return a message in OpenAI's format, with the data that the server attached to its tool calls."""
    if endpoint.key in _without_names:
        message = message.move_name_to_text()
    body = to_openai_message(message)
    for call in cast("list[dict[str, object]]", body.get("tool_calls") or []):
        if extras := find_call_extras(endpoint.key, str(call["id"])):
            call["extra_content"] = extras
    return body


def _needs_whole_response(options: RequestOptions) -> bool:
    """Return True if the reply cannot be streamed: OpenAI streams audio only as raw samples (pcm16)."""
    audio = options.extra_body.get("audio")
    return isinstance(audio, dict) and cast("dict[str, object]", audio).get("format") != STREAMED_AUDIO_FORMAT
