"""Chat model that calls Anthropic's Messages API."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import openai
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers import model_catalog
from newton.providers.anthropic.events import REASONING_EXTRA, EventTranslator
from newton.providers.anthropic.request import Block, ModelFacts, build_body
from newton.providers.call_extras import find_call_extras
from newton.providers.chat import CallRestart, ChatMessage, ChatReply, ReplyPiece, RequestOptions, ToolCall
from newton.providers.chat_model_base import UpstreamChat
from newton.providers.model_endpoint import ModelEndpoint, build_request_headers
from newton.providers.reply_stream import StartCompletion, drop_deltas, start_structured, stream_reply
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey

Events: TypeAlias = openai.AsyncStream[object]

REASONING_RESERVE = 2_048  # tokens of a background call, for a model that cannot answer without reasoning
_NO_OPTIONS = RequestOptions()
_NOTHING: Mapping[str, Any] = {}

_known_facts: dict[EndpointKey, ModelFacts] = {}  # of models that their servers describe, as learned by this process
_asked_again_at: dict[EndpointKey, float] = {}  # of models that could not be described, in event loop time


class AnthropicChat(UpstreamChat):
    """A chat model with Anthropic's Messages API. A failed call is repeated only before its reply begins."""

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """Stream a reply, as `StructuredModel.stream`.

        The model reasons as little as it can, because tokens of reasoning count towards `max_tokens`.
        """
        start = partial(_start_background, schema=schema)
        return drop_deltas(self._stream_reply(StreamAccumulator(messages, max_tokens), start))

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        """Stream a reply that may contain tool calls, as `ToolModel.answer`."""
        accumulator = StreamAccumulator(messages, max_tokens)
        return self._stream_reply(accumulator, partial(_start_with_options, options=options))

    async def _stream_reply(
        self, accumulator: StreamAccumulator, start: StartCompletion[Events]
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        endpoint = await self._open_endpoint()
        async with aclosing(stream_reply(endpoint, accumulator, start, EventTranslator().to_chunk)) as pieces:
            async for piece in pieces:
                yield piece


async def _start_with_options(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, deadline: float, *, options: RequestOptions
) -> Events:
    body = await _build_body(endpoint, accumulator, options)
    return await endpoint.call(lambda: _send(endpoint, body), deadline=deadline)


async def _start_background(
    endpoint: ModelEndpoint, accumulator: StreamAccumulator, deadline: float, *, schema: type[BaseModel] | None
) -> Events:
    if schema:
        return await start_structured(endpoint, accumulator, deadline, schema=schema, start=_start_briefly)
    return await endpoint.call(partial(_start_briefly, endpoint, accumulator, _NO_OPTIONS), deadline=deadline)


async def _start_briefly(endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions) -> Events:
    """Start a request for a reply with as little reasoning as the model allows."""
    body = await _build_body(endpoint, accumulator, options)
    facts = await _find_facts(endpoint)
    if facts.can_disable:
        body["thinking"] = {"type": "disabled"}
    elif facts.is_adaptive and facts.max_tokens:
        body["output_config"] = {**body.get("output_config", {}), "effort": "low"}
        body["max_tokens"] = min(body["max_tokens"] + REASONING_RESERVE, facts.max_tokens)
    return await _send(endpoint, body)


async def _build_body(endpoint: ModelEndpoint, accumulator: StreamAccumulator, options: RequestOptions) -> Block:
    def find_reasoning(call: ToolCall) -> Sequence[Block]:
        return cast("Sequence[Block]", find_call_extras(endpoint.key, call.id).get(REASONING_EXTRA, ()))

    return build_body(
        endpoint.model,
        accumulator.messages,
        options,
        max_tokens=accumulator.max_tokens,
        facts=await _find_facts(endpoint),
        find_reasoning=find_reasoning,
    )


async def _send(endpoint: ModelEndpoint, body: Block) -> Events:
    options: Any = {"headers": build_request_headers(endpoint.upstream)}
    return await endpoint.client.post(
        "/messages", body=body, options=options, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object]
    )


async def _find_facts(endpoint: ModelEndpoint) -> ModelFacts:
    """Return the properties of the model that its server reports.

    Return defaults if it reports none, and for a minute after a failed request.
    """
    if known := _known_facts.get(endpoint.key):
        return known
    now = asyncio.get_running_loop().time()
    if now < _asked_again_at.get(endpoint.key, now):
        return ModelFacts()
    try:
        models = await model_catalog.describe_models(endpoint.upstream, endpoint.client)
    except ProviderError:
        _asked_again_at[endpoint.key] = now + model_catalog.CACHE_SECONDS
        return ModelFacts()
    name = endpoint.model
    names = [name, *(one for one in models if one.startswith(f"{name}-"))]  # an alias, with the date of its model
    described = next((models[one] for one in names if one in models), _NOTHING)
    try:
        facts = _read_facts(described)
    except AttributeError:  # a server that describes its models in another way
        facts = ModelFacts()
    _known_facts[endpoint.key] = facts
    return facts


def _read_facts(described: Mapping[str, Any]) -> ModelFacts:
    limit = described.get("max_tokens")
    facts = ModelFacts(max_tokens=limit if isinstance(limit, int) else None)
    capabilities: Mapping[str, Any] = described.get("capabilities") or _NOTHING
    thinking: Mapping[str, Any] = capabilities.get("thinking") or _NOTHING
    types: Mapping[str, Mapping[str, object]] = thinking.get("types") or _NOTHING
    if not types:
        return facts
    supported = {kind for kind, one in types.items() if one.get("supported")}
    return replace(facts, is_adaptive="adaptive" in supported, can_disable="disabled" in supported)
