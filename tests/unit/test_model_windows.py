"""The context window of a model: what settings, servers, tables and refusals say of it."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from newton.errors import ContextWindowError, ProviderError, RefusedRequestError, RefusedSize
from newton.providers import model_catalog
from newton.providers.anthropic.chat import AnthropicChat
from newton.providers.chat import ChatMessage
from newton.providers.chat_model_base import UpstreamChat
from newton.providers.context_windows import ContextWindow, LearntWindows, find_published_window
from newton.providers.openai.chat import OpenAIChat
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import list_upstreams
from newton.settings import load
from tests.cases import load_cases
from tests.endpoint import Respond, Wire, endpoint
from tests.narrow_servers import Dialect, NarrowServer
from tests.support import until

CASES = load_cases(__file__)

PREFIX = "This model's maximum context length is"
TOO_LONG = "prompt is too long: 212000 tokens > 200000 maximum"
QUOTED = "My context window of 4096 tokens is too long."  # a person's words, in a request that a server quotes


async def error_of(*responses: Respond) -> ProviderError:
    async with endpoint(*responses) as server:
        model = named(server.url)
        with pytest.raises(ProviderError) as raised:
            _ = [piece async for piece in model.stream([ChatMessage("user", "Hi.")], max_tokens=None)]
    return raised.value


def named(url: str, *, provider: str = "openai", windows: LearntWindows | None = None, **fields: Any) -> UpstreamChat:
    settings = load({"models": {"s": {"provider": provider, "base_url": url, "model": "m", **fields}}}, env={})
    kinds = {"openai": OpenAIChat, "anthropic": AnthropicChat}
    return kinds[provider](list_upstreams(settings)["s"], windows=windows)


# In the words of: OpenAI (with and without a limit of the reply), its Responses API, DeepSeek, vLLM (three versions),
# SGLang, llama.cpp (two versions), llama-cpp-python, LM Studio (five versions), Ollama (two), Anthropic (two), Gemini,
# Mistral, xAI, Together, Kimi, Groq, DashScope.
REFUSALS: list[tuple[int, list[int | None], object]] = load_cases(__file__)["REFUSALS"]


@pytest.mark.parametrize(("status", "size", "told"), REFUSALS)
async def test_a_refusal_is_known_by_its_words_and_numbers(status: int, size: list[int | None], told: object) -> None:
    error = cast("dict[str, object]", told) if isinstance(told, dict) else {"message": told}

    async def refuses(wire: Wire) -> None:
        await wire.send(status, {"error": error})

    async def breaks(wire: Wire) -> None:
        await wire.begin_stream()
        await wire.event({"error": error})

    async def answers(wire: Wire) -> None:
        await wire.send(200, {"error": error})

    for respond in (refuses, breaks, answers):
        found = await error_of(respond)
        assert isinstance(found, ContextWindowError), (respond.__name__, found)
        assert found.size == RefusedSize(*size), respond.__name__


@pytest.mark.parametrize(
    "body",
    [
        {"message": "stop: each sequence is too long", "param": "stop"},
        {"message": "Invalid value: expected a string.", "param": "messages"},
        {"message": "Unknown field. " + "word " * 200 + "the context window of 4096 tokens"},
        {"message": "Invalid value: 'context window'.", "param": "reasoning_effort"},
        {"message": "Field required", "input": {"text": QUOTED}},
        {"message": f"[{{'type': 'missing', 'loc': ('body', 'stop'), 'input': {{'text': '{QUOTED}'}}}}]"},
        {"message": f"1 error\nstop\n  Input should be a list [type=list_type, input_value='{QUOTED}']"},
        {"message": f'Unknown field "a" in {json.dumps({"messages": [{"content": QUOTED}]})}'},
        {"message": {"detail": [{"msg": "Field required", "input": QUOTED}]}},
        {"detail": [{"type": "missing", "loc": ["body", "stop"], "msg": "Field required", "input": QUOTED}]},
    ],
)
async def test_another_refusal_is_not_taken_for_one(body: object) -> None:
    async def refuses(wire: Wire) -> None:
        await wire.send(400, {"error": body})

    async def refuses_plainly(wire: Wire) -> None:
        await wire.send(422, body)

    for respond in (refuses, refuses_plainly):
        assert isinstance(await error_of(respond), RefusedRequestError), respond.__name__


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"litellm.BadRequestError: {json.dumps({'error': {'message': TOO_LONG}})} Retried: 0"}},
        {"error": {"message": TOO_LONG, "param": "max_tokens"}},
        {"error": TOO_LONG},
        {"message": TOO_LONG},
        {"detail": TOO_LONG},
        [{"error": {"message": TOO_LONG}}],
    ],
)
async def test_a_refusal_is_found_where_servers_put_it(body: object) -> None:
    async def refuses(wire: Wire) -> None:
        await wire.send(400, body)

    error = await error_of(refuses)
    assert isinstance(error, ContextWindowError)
    assert error.size == RefusedSize(200_000, 212_000)


@pytest.mark.parametrize("dialect", ["vllm", "llama.cpp", "lm studio", "ollama", "anthropic"])
async def test_a_server_tells_its_window(dialect: Dialect) -> None:
    server = NarrowServer(dialect, 8_192, reports=8_192)
    async with endpoint(server.respond, lists=True) as made:
        model = named(made.url, provider="anthropic" if dialect == "anthropic" else "openai")
        assert model.known_window.source == "default"
        assert await model.find_window() == (8_192, "server") == model.known_window
        stated = named(made.url, window_tokens=16_000)
        assert await stated.find_window() == (16_000, "setting")


async def test_a_model_that_is_not_loaded_has_its_smallest_window() -> None:
    async def respond(wire: Wire) -> None:
        pages: dict[str, object] = {
            "/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "library"}]},
            "/api/ps": {"models": [{"name": "other:latest", "context_length": 32_768}]},
            "/api/show": {"parameters": "", "model_info": {"qwen3.context_length": 40_960}},
        }
        await wire.send(200, pages[wire.path.partition("?")[0]])

    async with endpoint(respond, lists=True) as made:
        assert await named(made.url).find_window() == (4_096, "server")


async def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_catalog, "PROBE_SECONDS", 0.1)
    gate = asyncio.Event()

    async def respond(wire: Wire) -> None:
        if wire.path.startswith("/api"):
            await gate.wait()
        await wire.send(200, {"object": "list", "data": [{"id": "m", "owned_by": "library"}]})

    async with endpoint(respond, lists=True) as made:
        for url in (made.url, "http://127.0.0.1:9/v1"):
            assert (await asyncio.wait_for(named(url).find_window(), 60)).source == "default"
        gate.set()


async def test_a_known_window_is_used_at_once_while_one_request_asks_for_it_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_catalog, "RETRY_SECONDS", 0.0)
    server, gate, asked = NarrowServer("ollama", 8_192, reports=8_192), asyncio.Event(), list[str]()

    async def respond(wire: Wire) -> None:
        asked.append(wire.path.partition("?")[0])
        await gate.wait()
        await server.describe(wire)

    async with endpoint(respond, lists=True) as made:
        model = named(made.url)
        gate.set()
        assert {await one for one in asyncio.as_completed([model.find_window() for _ in range(20)])} == {
            (8_192, "server")
        }
        assert sorted(asked) == ["/api/ps", "/api/show", "/v1/models"]
        gate.clear()
        server.reports = 6_000
        assert {await one for one in asyncio.as_completed([model.find_window() for _ in range(20)])} == {
            (8_192, "server")
        }

        async def is_asked() -> bool:
            return len(asked) > 3

        async def is_refreshed() -> bool:
            return (await model.find_window()).tokens == 6_000

        await until(is_asked)
        assert len(asked) == 4
        gate.set()
        await until(is_refreshed)


async def test_a_window_is_learnt_without_a_request() -> None:
    server = NarrowServer("vllm", 8_192)
    settings = load({"models": {"s": {"base_url": "http://127.0.0.1:9/v1"}}}, env={})
    await OpenAIChat(list_upstreams(settings)["s"]).learn_window(4_096, is_guess=False)
    async with endpoint(server.respond, lists=True) as made:
        settings = load({"models": {"s": {"base_url": made.url}}}, env={})
        model = OpenAIChat(list_upstreams(settings)["s"])
        _ = [piece async for piece in model.stream([ChatMessage("user", "Hi.")], max_tokens=None)]
        asked = len(made.asked)
        await model.learn_window(4_096, is_guess=False)
        assert model.known_window == (4_096, "refusal")
        assert len(made.asked) == asked


@pytest.mark.parametrize(("provider", "name", "tokens"), CASES["a_window_is_published_for_the_beginning_of_a_name"])
def test_a_window_is_published_for_the_beginning_of_a_name(provider: str, name: str, tokens: int | None) -> None:
    found = find_published_window(provider, name)
    assert (found and found.tokens) == tokens


def test_what_is_learnt_is_kept_while_the_stated_window_stays(tmp_path: Path) -> None:
    key, file = EndpointKey("s", "http://127.0.0.1:1/v1", "m"), tmp_path / "home" / "windows.json"
    stated, other = ContextWindow(128_000, "default"), EndpointKey("s", "http://127.0.0.1:1/v1", "n")
    LearntWindows(file).learn(key, 4_096, stated, is_guess=False)
    learnt = LearntWindows(file)
    assert learnt.apply(key, stated) == (4_096, "refusal")
    assert learnt.apply(other, stated) == stated
    for changed in (ContextWindow(8_192, "server"), ContextWindow(2_048, "setting")):
        assert learnt.apply(key, changed) == changed
    LearntWindows(file).learn(key, 4_000, stated, is_guess=False)
    assert learnt.apply(key, stated).tokens == 4_096, "the file is read once"
    learnt.learn(other, 9_000, stated, is_guess=False)
    for known in (learnt, LearntWindows(file)):
        assert [known.apply(one, stated).tokens for one in (key, other)] == [4_000, 9_000]
    file.write_text("{no json", encoding="utf-8")
    assert LearntWindows(file).apply(key, stated) == stated


def test_a_guess_is_kept_only_in_the_process(tmp_path: Path) -> None:
    key, file, stated = EndpointKey("s", "a", "m"), tmp_path / "windows.json", ContextWindow(128_000, "default")
    learnt = LearntWindows(file)
    learnt.learn(key, 9_000, stated, is_guess=True)
    assert learnt.apply(key, stated) == (9_000, "refusal") and not file.exists()
    learnt.learn(key, 8_192, stated, is_guess=False)
    learnt.learn(key, 4_000, stated, is_guess=True)
    assert learnt.apply(key, stated).tokens == 4_000 and LearntWindows(file).apply(key, stated).tokens == 8_192
