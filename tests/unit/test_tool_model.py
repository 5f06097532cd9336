"""The chat client with tools, and with an endpoint that keeps failing."""

import json

import pytest

from newton.errors import ProviderError, RefusedRequestError
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions, ToolDefinition
from newton.providers.openai.chat import OpenAIChat
from newton.providers.upstreams import build_provider_upstream
from newton.settings import Settings, load
from tests.endpoint import Wire, calls_tools, endpoint, fails, says

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "Hello")]


def settings(url: str) -> Settings:
    return load({"openai_base_url": url, "openai_model": "tiny", "llm_timeout": 5.0}, env={})


async def failure(model: OpenAIChat) -> str:
    """How it fails."""
    with pytest.raises(ProviderError) as raised:
        await answered(model)
    return str(raised.value)


TOOLS = (ToolDefinition("look", {"name": "look", "parameters": {"type": "object"}}),)
LOOK = RequestOptions(own_tools=TOOLS, extra_body={"temperature": 0.0})


async def answered(model: OpenAIChat, options: RequestOptions = LOOK) -> ChatReply:
    """What it answers when it may call a tool."""
    (reply,) = [one async for one in model.answer(ASKED, max_tokens=50, options=options) if isinstance(one, ChatReply)]
    return reply


async def test_tools_are_offered_until_a_model_refuses_them() -> None:
    async with endpoint(calls_tools(("c1", "look", {"at": "the sea"}), text="I look.")) as server:
        reply = await answered(OpenAIChat(build_provider_upstream("openai", settings(server.url))))
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("look", {"at": "the sea"})]
    assert (reply.text, reply.finish, reply.input_tokens) == ("I look.", "stop", 20)
    assert server.asked[0]["tools"] == [{"type": "function", "function": TOOLS[0].function}]
    assert server.asked[0]["temperature"] == 0.0

    # a model that takes no tools is asked without them and that is remembered
    async def refuses(wire: Wire) -> None:
        await wire.send(400, {"error": {"message": "tiny does not support tools"}})

    async with endpoint(refuses, says(["Plain."])) as server:
        model = OpenAIChat(build_provider_upstream("openai", settings(server.url)))
        assert [(await answered(model)).text, (await answered(model)).text] == ["Plain.", "Plain."]
    assert ["tools" in body for body in server.asked] == [True, False, False]

    # a caller whose tools are refused is told
    async with endpoint(refuses, says(["Plain."])) as server:
        with pytest.raises(RefusedRequestError, match="does not support tools"):
            await answered(
                OpenAIChat(build_provider_upstream("openai", settings(server.url))), RequestOptions(tools=TOOLS)
            )
    assert len(server.asked) == 1


async def test_an_endpoint_that_keeps_failing_is_left_alone_by_whoever_asks() -> None:
    # R8: attempts, the second ones included
    async with endpoint(fails(500, retry_after="0")) as server:
        said = [await failure(OpenAIChat(build_provider_upstream("openai", settings(server.url)))) for _ in range(12)]
    assert len(server.asked) <= 10
    assert "calls are paused" in said[-1]
