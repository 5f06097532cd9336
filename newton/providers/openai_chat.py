"""A chat model at an OpenAI-compatible endpoint; each call has one deadline and at most one retry."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeAlias, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers import model_catalog, structured_output
from newton.providers.call_extras import find_call_extras, keep_call_extras
from newton.providers.chat import (
    ChatMessage,
    ChatReply,
    ReplyDelta,
    ReplyPiece,
    RequestOptions,
    to_openai_message,
)
from newton.providers.field_substitution import Fields, send_accepted_fields
from newton.providers.model_endpoint import (
    FAILURES,
    ModelEndpoint,
    is_window_overflow,
    make_client,
)
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import ModelUpstream, openai_upstream
from newton.settings import Settings
from newton.telemetry import detached_span

Completion: TypeAlias = openai.AsyncStream[ChatCompletionChunk] | ChatCompletion
StartCompletion: TypeAlias = Callable[[ModelEndpoint, StreamAccumulator, float], Coroutine[None, None, Completion]]

LIMIT_FIELDS = ("max_completion_tokens", "max_tokens")  # at OpenAI, elsewhere
STREAMED_AUDIO_FORMAT = "pcm16"
_NO_TOOLS_PATTERN = re.compile(r"\btools?\b|tool_choice|jinja|function", re.IGNORECASE)  # no tool support
_NO_OPTIONS = RequestOptions()

_without_tools: set[EndpointKey] = set()  # models without tool support, as learned by this process


class OpenAIChat:
    """A ChatModel. A call is retried only before its reply begins.

    Without a model name, the only model of the server is used; see `find_only_model`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        upstream: ModelUpstream | None = None,
        model: str | None = None,
        client: openai.AsyncOpenAI | None = None,
    ) -> None:
        self._settings, self._upstream = settings, upstream or openai_upstream(settings)
        self._model = model or self._upstream.model
        self._client = client or make_client(self._upstream)

    @property
    def name(self) -> str:
        """Return the model's name; of an unknown model, a description."""
        known = self._model or model_catalog.known_only_model(self._upstream)
        return self._upstream.label(known) if known else f"the model of {self._upstream.address}"

    def with_model(self, name: str | None) -> "OpenAIChat":
        """Return the named model of the same server; None for the one that the settings name."""
        return OpenAIChat(self._settings, upstream=self._upstream, model=name, client=self._client)

    async def list_models(self) -> Sequence[str]:
        """See `ModelSelector.list_models`."""
        return await model_catalog.list_models(self._upstream, self._client)

    async def resolve_name(self) -> str:
        """Return the model's name. Raises ProviderError when none is configured and the server offers several."""
        return self._model or await model_catalog.find_only_model(self._upstream, self._client)

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """See `StructuredModel.stream`. The setting `llm_timeout` limits the whole reply."""
        start = (
            partial(_start_structured, schema=schema) if schema else partial(_start_with_options, options=_NO_OPTIONS)
        )
        return _drop_deltas(self._stream_reply(StreamAccumulator(messages, max_tokens), start))

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | ChatReply]:
        """See `ToolModel.answer`."""
        has_own_limit = any(name in options.extra_body for name in LIMIT_FIELDS)
        accumulator = StreamAccumulator(messages, None if has_own_limit else max_tokens)
        return self._stream_reply(accumulator, partial(_start_with_options, options=options))

    async def _stream_reply(
        self, accumulator: StreamAccumulator, start: StartCompletion
    ) -> AsyncGenerator[ReplyPiece | ChatReply]:
        endpoint = await self._open_endpoint()
        deadline, failure = endpoint.deadline(), None
        with detached_span("chat", model=endpoint.model) as span:
            try:
                async with aclosing(_iter_chunks(start(endpoint, accumulator, deadline), deadline)) as chunks:
                    async for chunk in chunks:
                        for piece in accumulator.add_chunk(chunk):
                            yield piece
            except FAILURES as error:
                failure = error
            reply = accumulator.to_reply(model=self._upstream.label(endpoint.model))
            keep_call_extras(endpoint.key, accumulator.call_extras)
            is_broken = accumulator.is_empty or reply.finish == "interrupted"
            is_outage = is_broken and reply.finish != "length"
            endpoint.record_result(failure or (ValueError() if is_outage else None))
            if not accumulator.is_empty or not reply.estimated:
                span.set_attributes(finish=reply.finish)
                span.set_attributes(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
                yield reply
            if is_broken:
                raise endpoint.to_provider_error(failure) if failure else _incomplete_reply_error(reply, endpoint)

    async def _open_endpoint(self) -> ModelEndpoint:
        return ModelEndpoint(client=self._client, model=await self.resolve_name(), upstream=self._upstream)


async def _start_with_options(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, deadline: float, *, options: RequestOptions
) -> Completion:
    """Start a request with tools, or without Newton's own tools if the model does not support tools."""
    without_own = replace(options, own_tools=())
    start_plain = partial(_start_completion, endpoint, accumulator, options=without_own)
    if not options.own_tools or endpoint.key in _without_tools:
        return await endpoint.call(start_plain, deadline=deadline)
    try:
        start_with_tools = partial(_start_completion, endpoint, accumulator, options=options)
        return await endpoint.call(start_with_tools, deadline=deadline)
    except openai.APIStatusError as error:
        if options.tools or not _is_refused_mode(error) or not _NO_TOOLS_PATTERN.search(error.message):
            raise
    completion = await endpoint.call(start_plain, deadline=deadline)
    _without_tools.add(endpoint.key)
    return completion


async def _start_structured(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, deadline: float, *, schema: type[BaseModel]
) -> Completion:
    """Start a request for structured output, with a looser format after each rejected one.

    If the endpoint rejects all formats, raise the first error. The next call tries only one: this may be an outage.
    """
    key, messages = endpoint.key, accumulator.messages
    refusal: openai.APIStatusError | None = None
    for mode in structured_output.modes_to_try(key):
        accumulator.messages = structured_output.add_schema_to_prompt(messages, schema, mode)
        response_format = structured_output.build_response_format(schema, mode)
        options = RequestOptions(extra_body={"response_format": response_format} if response_format else {})
        send = partial(_start_completion, endpoint, accumulator, options=options)
        try:
            completion = await endpoint.call(send, deadline=deadline, allow_retry=refusal is None)
        except openai.APIStatusError as error:
            if not _is_refused_mode(error):
                raise
            refusal = refusal or error
        else:
            structured_output.record_success(key, mode)
            return completion
    assert refusal, "no response format to try"
    structured_output.record_outage(key)
    raise refusal


async def _start_completion(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, *, options: RequestOptions
) -> Completion:
    create = endpoint.client.chat.completions.create

    async def send(fields: Fields) -> Completion:
        if _needs_whole_response(options):
            return await create(model=endpoint.model, messages=[], extra_body=dict(fields))
        return await create(model=endpoint.model, messages=[], stream=True, extra_body=dict(fields))

    return await send_accepted_fields(send, _build_fields(endpoint, accumulator, options), endpoint=endpoint.key)


def _build_fields(endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions) -> Fields:
    """Return the fields of the request, besides the model: those of the caller unchanged, and Newton's own."""
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
    """Return a message, with what the server attached to its tool calls."""
    body = to_openai_message(message)
    for call in cast("list[dict[str, object]]", body.get("tool_calls") or []):
        if extras := find_call_extras(endpoint.key, str(call["id"])):
            call["extra_content"] = extras
    return body


def _needs_whole_response(options: RequestOptions) -> bool:
    """Return whether the reply cannot be streamed: OpenAI streams audio only as raw samples."""
    audio = options.extra_body.get("audio")
    return isinstance(audio, dict) and cast("dict[str, object]", audio).get("format") != STREAMED_AUDIO_FORMAT


def _incomplete_reply_error(reply: ChatReply, endpoint: ModelEndpoint) -> ProviderError:
    """Return the error for a reply that is empty or incomplete although the endpoint reported no error."""
    if reply.text:
        return ProviderError(f"{endpoint.address} ended its reply early.", hint="Ask again.")
    hint = "Raise NEWTON_MAX_OUTPUT_TOKENS." if reply.finish == "length" else f"Ask again, or set {endpoint.upstream.model_setting}."
    return ProviderError(f"The model {endpoint.model} sent an empty reply.", hint=hint)


def _is_refused_mode(error: openai.APIStatusError) -> bool:
    return error.status_code in structured_output.REFUSAL_STATUSES and not is_window_overflow(error)


async def _iter_chunks(start: Awaitable[Completion], deadline: float) -> AsyncGenerator[object]:
    """Yield the chunks of a stream as JSON values, or a whole response as one.

    Each wait has a timeout of its own, so that the deadline never cancels the consumer.
    """
    completion = await start
    if isinstance(completion, ChatCompletion):
        yield _to_json(completion)
        return
    async with completion as stream:
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            yield _to_json(chunk)


def _to_json(response: object) -> object:
    """Return a response as JSON. One that violates the protocol may be any value."""
    return response.to_dict(warnings=False) if isinstance(response, openai.BaseModel) else response


async def _drop_deltas(pieces: AsyncGenerator[ReplyPiece | ChatReply]) -> AsyncGenerator[str | ChatReply]:
    async with aclosing(pieces):
        async for piece in pieces:
            if not isinstance(piece, ReplyDelta):
                yield piece
