"""Chat model that calls Anthropic's Messages API, whose events become chunks of OpenAI's format."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

import openai
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers import model_catalog
from newton.providers.anthropic.request import Block, ModelFacts, build_body
from newton.providers.chat import CallRestart, ChatMessage, ChatReply, ReplyPiece, RequestOptions, ToolCall
from newton.providers.chat_model_base import UpstreamChat
from newton.providers.model_endpoint import ModelEndpoint, build_request_headers
from newton.providers.reply_stream import StartCompletion, drop_deltas, find_call_extras, start_structured, stream_reply
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey

FINISH_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
REASONING_FIELD = "reasoning_content"
REASONING_EXTRA = "reasoning_blocks"  # in the extras of a call
REFUSAL_TEXT = "The model refuses to answer."

Event = Mapping[str, Any]
Chunk = dict[str, Any]


@dataclass(slots=True)
class EventTranslator:
    """Translates the events of one stream of Anthropic into chunks of OpenAI's format.

    Its state is the usage, the reasoning blocks and the tool calls so far.
    """

    _usage: dict[str, Any] = field(default_factory=dict[str, Any])
    _reasoning: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _calls: dict[int, int] = field(default_factory=dict[int, int])
    _open_block: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_chunk(self, event: object) -> Chunk:
        """Translate an event into a chunk of OpenAI's format; an event without output becomes an empty chunk.

        Raises ValueError for an invalid event.
        """
        try:
            return self._translate(cast("Event", event))  # a wrong type is an invalid event
        except (KeyError, TypeError, AttributeError):
            raise ValueError from None

    def _translate(self, event: Event) -> Chunk:
        match event["type"]:
            case "message_start":
                self._usage |= event["message"].get("usage") or {}
                return _to_chunk({}, usage=self._build_usage())
            case "content_block_start":
                return _to_chunk(self._start_block(event["index"], event["content_block"]))
            case "content_block_delta":
                return _to_chunk(self._add_delta(event["index"], event["delta"]))
            case "message_delta":
                return self._finish(event)
            case _:
                return _to_chunk({})

    def _start_block(self, index: int, block: Event) -> Chunk:
        match block["type"]:
            case "text":
                return {"content": block.get("text") or ""}
            case "thinking" | "redacted_thinking":
                self._open_block = dict(block)
                self._reasoning.append(self._open_block)
                return {REASONING_FIELD: block.get("thinking") or ""}
            case "tool_use":
                return self._start_call(index, block)
            case _:
                return {}

    def _start_call(self, index: int, block: Event) -> Chunk:
        number = self._calls[index] = len(self._calls)
        given = json.dumps(block["input"]) if block.get("input") else ""
        call = {"index": number, "id": block["id"], "function": {"name": block["name"], "arguments": given}}
        if self._reasoning:
            call["extra_content"] = {REASONING_EXTRA: self._reasoning}
            self._reasoning = []
        return {"tool_calls": [call]}

    def _add_delta(self, index: int, delta: Event) -> Chunk:
        """Return the part of a reply in a delta event; an empty dict if nothing of it is passed on."""
        match delta["type"]:
            case "text_delta":
                return {"content": delta["text"]}
            case "input_json_delta":
                return {"tool_calls": [{"index": self._calls[index], "function": {"arguments": delta["partial_json"]}}]}
            case "thinking_delta":
                self._open_block["thinking"] = self._open_block.get("thinking", "") + delta["thinking"]
                return {REASONING_FIELD: delta["thinking"]}
            case "signature_delta":
                self._open_block["signature"] = self._open_block.get("signature", "") + delta["signature"]
                return {}
            case _:
                return {}

    def _finish(self, event: Event) -> Chunk:
        usage: Event = event.get("usage") or {}
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        reason, delta = event["delta"].get("stop_reason"), Chunk()
        if reason == "refusal":
            details: Event = event["delta"].get("stop_details") or {}
            delta = {"refusal": details.get("explanation") or REFUSAL_TEXT}
        finish = FINISH_REASONS.get(reason, "stop") if reason else None
        return _to_chunk(delta, finish_reason=finish, usage=self._build_usage())

    def _build_usage(self) -> Chunk | None:
        """Return the usage in OpenAI's format, in which prompt tokens include cached ones; None if not reported yet."""
        usage = self._usage
        if "input_tokens" not in usage:
            return None
        read, written = (usage.get(f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
        details = {"cached_tokens": read, "cache_creation_tokens": written} if read or written else None
        spent: Event = usage.get("output_tokens_details") or {}
        reasoning = spent.get("thinking_tokens")
        return {
            "prompt_tokens": usage["input_tokens"] + read + written,
            "completion_tokens": usage.get("output_tokens") or 0,
            "prompt_tokens_details": details,
            "completion_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
        }


def _to_chunk(delta: Chunk, *, finish_reason: str | None = None, usage: Chunk | None = None) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], "usage": usage}


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
        """Stream the pieces of a reply, then a ChatReply with all of it.

        With a `schema`, JSON that matches it is asked for. The model reasons as little as it can, because tokens of
        reasoning count towards `max_tokens`.
        """
        start = partial(_start_background, schema=schema)
        return drop_deltas(self._stream_reply(StreamAccumulator(messages, max_tokens), start))

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        """Stream the pieces of a reply that may have tool calls, then a ChatReply, as `ToolModel.answer` describes."""
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
    """Return the properties of the model that its server reports; defaults if it reports none.

    After a failed request the defaults apply for a minute.
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
