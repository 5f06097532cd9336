"""Anthropic's Messages API as the server of a model, over real HTTP on loopback."""

import json
import logging
import traceback
from typing import Any

import pytest
from pydantic import BaseModel

from newton.errors import ContextWindowError, ModelNotFoundError, ProviderError, RateLimitError, RefusedRequestError
from newton.providers.anthropic.chat import AnthropicChat
from newton.providers.chat import ChatMessage, ChatReply, ReplyDelta, RequestOptions, ToolCall, ToolDefinition
from newton.providers.upstreams import build_provider_upstream
from newton.settings import load
from tests.endpoint import Endpoint, Respond, Wire, endpoint
from tests.messages_server import AnthropicServer
from tests.model_servers import KEY, serving_models

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "Hello")]
LOOK = ToolDefinition("look", {"name": "look", "parameters": {"type": "object", "properties": {}}})
START = {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}


def model(url: str, name: str = "tiny", **changed: object) -> AnthropicChat:
    chosen = {"anthropic_base_url": url, "anthropic_api_key": KEY, "anthropic_model": name, "llm_timeout": 5.0}
    return AnthropicChat(build_provider_upstream("anthropic", load({**chosen, **changed}, env={})))


async def heard(chat: AnthropicChat, *messages: ChatMessage, **fields: object) -> list[Any]:
    options = RequestOptions(extra_body=fields)
    return [piece async for piece in chat.answer(messages or ASKED, max_tokens=None, options=options)]


def text(piece: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}


def streams(*events: object) -> Respond:
    async def respond(wire: Wire) -> None:
        if wire.path.startswith("/v1/models"):
            await wire.send(200, {"data": [{"id": "tiny", "max_tokens": 4_000}], "has_more": False})
            return
        await wire.begin_stream()
        for event in events:
            await wire.event(event)

    return respond


def fails(status: int, kind: str, message: str, **headers: str) -> Respond:
    async def respond(wire: Wire) -> None:
        body = {"type": "error", "error": {"type": kind, "message": message}}
        await wire.send(404 if wire.path.startswith("/v1/models") else status, body, **headers)

    return respond


def sent(server: Endpoint) -> list[dict[str, Any]]:
    return [body for body in server.asked if body]


async def test_a_reply_comes_in_pieces_and_ends_with_its_cost() -> None:
    async with endpoint(streams(START, {"type": "ping"}, text("Good "), text("day"), END), lists=True) as server:
        *pieces, reply = await heard(model(server.url))
    assert pieces == ["Good ", "day"]
    assert reply == ChatReply(text="Good day", model="tiny", input_tokens=11, output_tokens=3)
    mark = {"cache_control": {"type": "ephemeral"}}
    assert sent(server) == [
        {
            "model": "tiny",
            "max_tokens": 4_000,  # what the server says of the model
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", **mark}]}],
            "system": [{"type": "text", "text": "Be kind.", **mark}],
            "stream": True,
        }
    ]


@pytest.mark.parametrize(("said", "limit"), [(None, 8_192), (4_000, 4_000), (128_000, 32_000)])
async def test_a_reply_without_a_limit_has_that_of_the_model(said: int | None, limit: int) -> None:
    async def respond(wire: Wire) -> None:
        if wire.path.startswith("/v1/models"):
            await wire.send(200, {"data": [{"id": "tiny-20261007", "max_tokens": said}]})
        else:
            await streams(START, text("Yes."), END)(wire)

    async with endpoint(respond, lists=True) as server:
        await heard(model(server.url))
        await heard(model(server.url), max_completion_tokens=7)
    assert [body["max_tokens"] for body in sent(server)] == [limit, 7]


async def test_a_server_that_lists_no_models_is_asked_for_them_once() -> None:
    async def respond(wire: Wire) -> None:
        if wire.path.startswith("/v1/models"):
            await wire.send(404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}})
            return
        await wire.begin_stream()
        for event in (START, text("Good day"), END):
            await wire.event(event)

    async with endpoint(respond, lists=True) as server:
        for _ in range(2):
            *_, reply = await heard(model(server.url))
            assert reply.text == "Good day"
    assert len(sent(server)) == 2 and len(server.asked) == 3


async def test_cached_and_reasoning_tokens_are_counted_as_at_openai() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3, "output_tokens": 1}
    spent = {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}
    events = [{"type": "message_start", "message": {"usage": usage}}, text("Hi"), {**END, "usage": spent}]
    async with endpoint(streams(*events), lists=True) as server:
        *_, reply = await heard(model(server.url))
    assert (reply.input_tokens, reply.output_tokens, reply.estimated) == (28, 9, False)
    assert reply.usage_details == {
        "prompt_tokens_details": {"cached_tokens": 20, "cache_creation_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }


@pytest.mark.parametrize(
    ("reason", "finish", "server_finish"),
    [
        ("max_tokens", "length", "length"),
        ("model_context_window_exceeded", "length", "length"),
        ("stop_sequence", "stop", "stop"),
        ("pause_turn", "stop", "stop"),
    ],
)
async def test_the_reason_of_an_end_is_told_in_openais_words(reason: str, finish: str, server_finish: str) -> None:
    end = {**END, "delta": {"stop_reason": reason}}
    async with endpoint(streams(START, text("Good "), end), lists=True) as server:
        *_, reply = await heard(model(server.url))
    assert (reply.finish, reply.server_finish) == (finish, server_finish)


async def test_a_refusal_of_the_model_is_speech() -> None:
    end = {**END, "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "I cannot help with that."}}}
    async with endpoint(streams(START, end), lists=True) as server:
        delta, reply = await heard(model(server.url))
    assert delta == ReplyDelta(delta={"refusal": "I cannot help with that."})
    assert (reply.text, reply.speech, reply.finish) == ("", "I cannot help with that.", "stop")


async def test_a_reply_that_breaks_off_is_told_with_what_came() -> None:
    received: list[Any] = []
    async with endpoint(streams(START, text("Good ")), lists=True) as server:
        with pytest.raises(ProviderError, match="ended its reply early"):
            async for piece in model(server.url).answer(ASKED, max_tokens=50, options=RequestOptions()):
                received += [piece]
    assert received[0] == "Good "
    assert (received[1].finish, received[1].input_tokens) == ("interrupted", 11)


@pytest.mark.parametrize(
    "event",
    ["{not json", [1], {"type": "content_block_delta", "index": 0}, {"type": "content_block_start", "index": 0}],
)
async def test_an_invalid_event_is_an_invalid_reply(event: object) -> None:
    async with endpoint(streams(START, event), lists=True) as server:
        with pytest.raises(ProviderError, match="invalid reply"):
            await heard(model(server.url))


async def test_an_overload_is_retried_before_a_stream_and_told_within_one() -> None:
    busy = fails(529, "overloaded_error", "Overloaded", retry_after="0")
    lists = streams(START, text("Yes"), END)
    async with endpoint(lists, busy, lists, lists=True) as server:
        *pieces, _ = await heard(model(server.url))
    assert (pieces, len(sent(server))) == (["Yes"], 2)
    # an error within a stream is told
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    async with endpoint(streams(START, text("Good "), error), lists=True) as server:
        with pytest.raises(RateLimitError, match="busy"):
            await heard(model(server.url))
    upstream = build_provider_upstream("anthropic", load({"anthropic_api_key": "sk-ant-x"}, env={}))
    assert (AnthropicChat(upstream).name, upstream.address) == ("claude-haiku-5-5", "https://api.anthropic.com/v1")


@pytest.mark.parametrize(
    ("status", "kind", "message", "error", "what"),
    [
        (529, "overloaded_error", "Overloaded", RateLimitError, "busy"),
        (429, "rate_limit_error", "This request would exceed your limit.", RateLimitError, "would exceed your limit"),
        (404, "not_found_error", "model: tiny", ModelNotFoundError, "has no model 'tiny'. Set ANTHROPIC_MODEL"),
        (401, "authentication_error", "invalid x-api-key", ProviderError, "Check ANTHROPIC_API_KEY"),
        (500, "api_error", "Internal server error", ProviderError, "HTTP status 500"),
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            RefusedRequestError,
            "HTTP status 413",
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            ContextWindowError,
            "context window",
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 8 + 9 > 10",
            ContextWindowError,
            "context window",
        ),
    ],
)
async def test_errors_are_those_of_every_server(
    status: int, kind: str, message: str, error: type[ProviderError], what: str
) -> None:
    async with endpoint(fails(status, kind, message, retry_after="60"), lists=True) as server:
        with pytest.raises(error, match=what) as failed:
            await heard(model(server.url))
    assert type(failed.value) is error


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("`temperature` is deprecated for this model.", "temperature"),
        ("stop_sequences: each stop sequence must contain non-whitespace", "stop"),
        ("messages.3.content.0: unexpected `tool_use_id` found", "messages"),
        ("output_config.format.schema: property 'minimum' is not supported", "response_format"),
        ("Your credit balance is too low.", None),
    ],
)
async def test_a_refusal_names_the_field_as_the_caller_sent_it(message: str, param: str | None) -> None:
    async with endpoint(fails(400, "invalid_request_error", message), lists=True) as server:
        with pytest.raises(RefusedRequestError) as refused:
            await heard(model(server.url))
    assert refused.value.param == param


@pytest.mark.parametrize("status", [400, 401, 429, 529])
async def test_neither_key_nor_prompt_is_told(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def tells_all(wire: Wire) -> None:
        said = {"type": "error", "error": {"type": "x", "message": f"{KEY} {json.dumps(wire.body)}"}}
        await wire.send(status, said, retry_after="0")

    caplog.set_level(logging.DEBUG)
    async with endpoint(tells_all, lists=True) as server:
        with pytest.raises(ProviderError) as failed:
            await heard(model(server.url))
    told = "".join(traceback.format_exception(failed.value)) + caplog.text
    assert KEY not in told and "Be kind" not in told


async def test_the_strict_server_takes_every_conversation() -> None:
    call = ToolCall("call.of:another/server", "look", "not json")
    spoken = [
        ChatMessage("system", "Be kind."),
        ChatMessage("assistant", "Welcome!"),
        ChatMessage("user", ""),
        ChatMessage("user", "Look.", parts=({"type": "text", "text": "  "}, {"type": "text", "text": "Look."})),
        ChatMessage("assistant", "", (call, ToolCall("b", "look", "{}"))),
        ChatMessage("tool", "A ferry.", tool_call_id=call.id),
        ChatMessage("tool", "", tool_call_id="b"),
        ChatMessage("user", "And now?"),
        ChatMessage("user", "Well?"),
    ]
    async with serving_models(AnthropicServer()) as server:
        chat = model(server.url, server.model)
        *_, reply = await heard(chat, *spoken)
        assert reply.text.endswith("Well?")
        body = server.asked[-1]
        assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
        assert [block["type"] for block in body["messages"][-1]["content"]] == [
            "tool_result",
            "tool_result",
            "text",
            "text",
        ]
        assert (body["tools"][0]["name"], body["tool_choice"]) == ("look", {"type": "none"})
        marked = [turn["content"][-1].get("cache_control") for turn in body["messages"]]
        assert marked == [None, None, None, None, {"type": "ephemeral"}], "the next request repeats all of it"


async def test_reasoning_goes_back_with_the_call_that_it_led_to() -> None:
    async with serving_models(AnthropicServer()) as server:
        chat, weather = model(server.url, server.model), ToolDefinition("weather", {"name": "weather"})
        options = RequestOptions(tools=(weather,))
        asked = ChatMessage("user", "How is the weather?")
        reply: Any = [piece async for piece in chat.answer([asked], max_tokens=None, options=options)][-1]
        assert (reply.calls[0].name, json.loads(reply.calls[0].arguments)) == ("weather", {"place": "Porto"})
        result = ChatMessage("tool", "Rain.", tool_call_id=reply.calls[0].id)
        called = ChatMessage("assistant", "", reply.calls)
        final: Any = [piece async for piece in chat.answer([asked, called, result], max_tokens=None, options=options)][
            -1
        ]
        assert final.text == "It rains."
        kinds = [block["type"] for block in server.asked[-1]["messages"][1]["content"]]
        assert kinds == ["thinking", "tool_use"]


class Order(BaseModel):
    drink: str
    cups: int


async def test_a_structured_call_asks_for_the_schema_and_no_reasoning() -> None:
    async with serving_models(AnthropicServer()) as server:
        chat = model(server.url, server.model)
        *_, reply = [piece async for piece in chat.stream(ASKED, max_tokens=50, schema=Order)]
        assert isinstance(reply, ChatReply)
        assert Order.model_validate_json(reply.text) == Order(drink="tea", cups=4)
        assert server.asked[-1]["thinking"] == {"type": "disabled"}
        assert (len(server.asked), server.asked[-1]["max_tokens"]) == (1, 50)


async def test_options_of_openai_have_their_names_of_the_messages_api() -> None:
    choice = {"type": "function", "function": {"name": "look"}}
    fields = {
        "stop": "END",
        "tool_choice": choice,
        "parallel_tool_calls": False,
        "reasoning_effort": "high",
        "service_tier": "default",
        "seed": 7,
        "n": 1,
        "presence_penalty": 0.0,
        "metadata": {"user_id": "ana"},
        "frequency_penalty": None,
    }
    async with serving_models(AnthropicServer()) as server:
        chat = model(server.url, server.model)
        options = RequestOptions(tools=(LOOK,), extra_body=fields)
        assert [piece async for piece in chat.answer(ASKED, max_tokens=None, options=options)]
        body = server.asked[-1]
    assert body.keys() - {"model", "messages", "system", "stream", "max_tokens", "tools"} == {
        "stop_sequences",
        "tool_choice",
        "thinking",
        "output_config",
        "service_tier",
    }
    assert (body["stop_sequences"], body["service_tier"]) == (["END"], "standard_only")
    assert body["tool_choice"] == {"type": "tool", "name": "look", "disable_parallel_tool_use": True}
    assert (body["output_config"], body["thinking"]["type"]) == ({"effort": "high"}, "adaptive")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"audio": {"format": "wav"}}, "audio"),
        ({"temperature": 0.2}, "temperature"),
        ({"guided_json": {}}, "guided_json"),
    ],
)
async def test_an_option_that_the_api_lacks_is_refused_and_named(fields: dict[str, object], param: str) -> None:
    async with serving_models(AnthropicServer()) as server:
        with pytest.raises(RefusedRequestError) as refused:
            await heard(model(server.url, server.model), **fields)
    assert refused.value.param == param


async def test_images_and_documents_are_sent_with_their_data_or_address() -> None:
    parts: Any = (
        {"type": "text", "text": "What are these?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://host.example/a.png"}},
        {"type": "file", "file": {"filename": "lease.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
    )
    async with serving_models(AnthropicServer()) as server:
        chat = model(server.url, server.model)
        *_, reply = await heard(chat, ChatMessage("user", "What are these?", parts=parts))
        sources = [block["source"] for block in server.asked[-1]["messages"][0]["content"][1:]]
        sound: Any = ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},)
        with pytest.raises(RefusedRequestError, match="type input_audio"):
            await heard(chat, ChatMessage("user", "And this?", parts=sound))
    assert reply.text == "I was shown 3: What are these?"
    assert sources == [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "url", "url": "https://host.example/a.png"},
        {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
    ]
