"""Streaming of a model's reply, for all protocols, with what a server wants back. Each call has one deadline.

A call is repeated at most once after a failure, and at most once because its reply does not begin.

Only the server understands what it wants back. This process keeps it in memory for the next requests of a
conversation.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import TypeAlias, TypeVar

import httpx2
import openai
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers import structured_output
from newton.providers.chat import CallRestart, ChatReply, ReplyPiece, RequestOptions
from newton.providers.model_endpoint import FAILURES, ModelEndpoint, is_window_overflow
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey
from newton.telemetry import detached_span

MAX_KEPT = 1_024  # calls; the oldest are dropped

CallExtras = Mapping[str, object]

_kept: OrderedDict[tuple[EndpointKey, str], CallExtras] = OrderedDict()


def keep_call_extras(endpoint: EndpointKey, extras: Mapping[str, CallExtras]) -> None:
    """Keep in memory the data that a server attached to tool calls and wants back later.

    `extras` has it by id of the call.
    """
    for call_id, fields in extras.items():
        _kept[endpoint, call_id] = fields
        _kept.move_to_end((endpoint, call_id))
    while len(_kept) > MAX_KEPT:
        _kept.popitem(last=False)


def find_call_extras(endpoint: EndpointKey, call_id: str) -> CallExtras:
    """Return the data that the server attached to a tool call; empty if there was none or it was dropped."""
    return _kept.get((endpoint, call_id), {})


C = TypeVar("C")

Completion: TypeAlias = openai.AsyncStream[object] | ChatCompletion
StartCompletion: TypeAlias = Callable[[ModelEndpoint, StreamAccumulator, float], Coroutine[None, None, C]]
ToChunk: TypeAlias = Callable[[object], object]  # from an event of the server to a chunk of OpenAI's format


def _keep(event: object) -> object:
    return event


async def stream_reply(
    endpoint: ModelEndpoint,
    accumulator: StreamAccumulator,
    start: StartCompletion[Completion],
    to_chunk: ToChunk = _keep,
    *,
    is_streamed: bool = True,
) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
    """Yield the pieces of a reply, then the ChatReply with all of it, as `ToolModel.answer` describes.

    `start` sends the request; `to_chunk` converts an event of the server to a chunk of OpenAI's format. The setting
    `llm_timeout` limits the time of the whole reply. If `is_streamed`, the request is sent once more when no event has
    come in the time of the setting `llm_start_timeout`.
    """
    deadline, failure = endpoint.deadline(), None
    send = partial(start, endpoint, accumulator, deadline)
    events = _iter_restarted(endpoint, send, deadline) if is_streamed else _iter_events(send(), deadline)
    with detached_span("chat", model=endpoint.model) as span:
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, CallRestart):
                        yield event
                        continue
                    for piece in accumulator.add_chunk(to_chunk(event)):
                        yield piece
        except FAILURES as error:
            failure = error
        reply = accumulator.to_reply(model=endpoint.upstream.label(endpoint.model))
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


async def start_structured(
    endpoint: ModelEndpoint,
    accumulator: StreamAccumulator,
    deadline: float,
    *,
    schema: type[BaseModel],
    start: Callable[[ModelEndpoint, StreamAccumulator, RequestOptions], Awaitable[C]],
) -> C:
    """Send a request for JSON that matches a schema; return what `start` returns.

    If its format is rejected, try a looser one. Raises the first error if the server rejects all formats. As this may
    be an outage, the next call then tries only the loosest.
    """
    key, messages = endpoint.key, accumulator.messages
    refusal: openai.APIStatusError | None = None
    for mode in structured_output.modes_to_try(key):
        accumulator.messages = structured_output.add_schema_to_prompt(messages, schema, mode)
        response_format = structured_output.build_response_format(schema, mode)
        options = RequestOptions(extra_body={"response_format": response_format} if response_format else {})
        send = partial(start, endpoint, accumulator, options)
        try:
            completion = await endpoint.call(send, deadline=deadline, allow_retry=refusal is None)
        except openai.APIStatusError as error:
            if not is_refused_mode(error):
                raise
            refusal = refusal or error
        else:
            structured_output.record_success(key, mode)
            return completion
    assert refusal, "no response format to try"
    structured_output.record_outage(key)
    raise refusal


def is_refused_mode(error: openai.APIStatusError) -> bool:
    """Return True if the error may mean that the server does not support a feature of the request, such as tools."""
    return error.status_code in structured_output.REFUSAL_STATUSES and not is_window_overflow(error)


async def drop_deltas(
    pieces: AsyncGenerator[ReplyPiece | CallRestart | ChatReply],
) -> AsyncGenerator[str | ChatReply]:
    """Yield only the pieces of text and the ChatReply of a stream."""
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, str | ChatReply):
                yield piece


async def _iter_restarted(
    endpoint: ModelEndpoint, send: Callable[[], Awaitable[Completion]], deadline: float
) -> AsyncGenerator[object]:
    """Yield the events of a reply. If none comes in `start_seconds`, yield a CallRestart and send the request again.

    This needs time before the deadline, and retry budget; otherwise the first request is waited for.
    """
    loop, start_seconds = asyncio.get_running_loop(), endpoint.upstream.start_seconds
    start_deadline = loop.time() + start_seconds
    if start_deadline < deadline and endpoint.breaker.has_retry:
        async with aclosing(_iter_events(send(), deadline)) as events:
            try:
                async with asyncio.timeout_at(start_deadline):
                    first = await anext(events, None)
            except TimeoutError as error:
                if not endpoint.breaker.allow_retry():
                    raise
                endpoint.record_result(error)
            else:
                if first is not None:
                    yield first
                    async for event in events:
                        yield event
                return
        yield CallRestart(start_seconds)
    async with aclosing(_iter_events(send(), deadline)) as events:
        async for event in events:
            yield event


async def _iter_events(start: Awaitable[Completion], deadline: float) -> AsyncGenerator[object]:
    """Yield the events of a stream as JSON values; a response that is not streamed is one event.

    The deadline applies to each wait for an event, so it never interrupts the code that handles one.
    """
    completion = await start
    if isinstance(completion, ChatCompletion):
        yield _to_json(completion)
        return
    async with completion as stream:
        if stream.response.headers.get("content-type", "").startswith("application/json"):
            yield await _read_whole_response(stream.response)
            return
        while True:
            async with asyncio.timeout_at(deadline):
                event = await anext(stream, None)
            if event is None:
                return
            yield _to_json(event)


async def _read_whole_response(response: httpx2.Response) -> object:
    """Return the JSON of a response that is no stream. Raises APIError if it is an error, whatever its status."""
    match json.loads(await response.aread()):
        case {"error": error} if error:
            raise openai.APIError(str(error), response.request, body=error)
        case body:
            return body


def _to_json(response: object) -> object:
    """Return a response as a JSON value. An invalid response is returned unchanged."""
    return response.to_dict(warnings=False) if isinstance(response, openai.BaseModel) else response


def _incomplete_reply_error(reply: ChatReply, endpoint: ModelEndpoint) -> ProviderError:
    """Create the error for an empty or incomplete reply of a server that reported no error."""
    if reply.text:
        return ProviderError(f"{endpoint.address} ended its reply early.", hint="Ask again.")
    setting = endpoint.upstream.model_setting
    hint = (
        "Raise NEWTON_MAX_OUTPUT_TOKENS."
        if reply.finish == "length"
        else f"Send the request again, or set {setting} to another model."
    )
    return ProviderError(f"The model {endpoint.model} sent an empty reply.", hint=hint)
