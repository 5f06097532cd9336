"""The adapters of newton-client, with their frameworks where these are installed, on a daemon."""

import importlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from newton.db.pool import Database
from tests.system.client_package import lay_out
from tests.system.served import Api, served

MESSAGES = [{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "In the blue jar."}]


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The module newton_client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(lay_out(tmp_path_factory.mktemp("site"))), *sys.path])
        return importlib.import_module("newton_client")


@pytest_asyncio.fixture
async def client(api: Api, package: Any) -> AsyncGenerator[Any]:
    async with package.Client(api.url, token=await api.token("ana")) as one:
        yield one


def adapter(framework: str, name: str) -> Any:
    """The module of an adapter; skips the test where its framework is not installed."""
    pytest.importorskip(framework, reason=f"{framework} is not installed")
    return importlib.import_module(f"newton_client.adapters.{name}")


async def test_a_session_of_the_agents_sdk_returns_what_was_added(client: Any) -> None:
    session = adapter("agents", "openai_agents").NewtonSession("talk / 1", client)
    items = [
        *MESSAGES,
        {"type": "function_call", "call_id": "c1", "name": "open", "arguments": '{"jar": "blue"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "It is open."},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "The jar."}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]},
    ]
    assert await session.get_items() == [] and await session.pop_item() is None
    await session.clear_session()
    await session.add_items([])
    await session.add_items(items)
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[-2:]
    assert await session.get_items(limit=0) == []
    assert await session.pop_item() == items[-1]
    assert await session.pop_item() == items[-2]
    assert await session.get_items() == items[:-2]
    await session.add_items(MESSAGES[:1])
    assert await session.get_items() == [*items[:-2], MESSAGES[0]]
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items(MESSAGES)
    assert await session.get_items() == MESSAGES


async def test_a_session_of_the_agents_sdk_is_remembered(client: Any) -> None:
    module = adapter("agents", "openai_agents")
    agents = importlib.import_module("agents")
    session = module.NewtonSession("talk", client)
    assert isinstance(session, agents.Session)
    output: dict[str, Any] = {"type": "output_text", "text": "In the blue jar.", "annotations": []}
    reply: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [output],
    }
    await session.add_items([MESSAGES[0], reply])
    assert await session.get_items() == MESSAGES
    found = await client.recall("Where is the key?")
    assert "In the blue jar." in " ".join(one["text"] for one in found["items"])


async def test_an_agent_of_the_agents_sdk_continues_a_session(client: Any) -> None:
    module = adapter("agents", "openai_agents")
    agents, fakes = importlib.import_module("agents"), importlib.import_module("tests.system.agents_model")
    session = module.NewtonSession("talk", client)
    model = fakes.EchoModel()
    agent = agents.Agent(name="keeper", model=model)
    config = agents.RunConfig(tracing_disabled=True)
    first = await agents.Runner.run(agent, "The key is in the jar.", session=session, run_config=config)
    await agents.Runner.run(agent, "Where is it?", session=session, run_config=config)
    assert first.final_output == "You said: The key is in the jar."
    assert [one["content"] for one in model.inputs[-1]] == [
        "The key is in the jar.",
        "You said: The key is in the jar.",
        "Where is it?",
    ]


async def test_pydantic_ai_gets_the_context_and_hands_the_exchange_over(client: Any) -> None:
    module = adapter("pydantic_ai", "pydantic_ai")
    ai = importlib.import_module("pydantic_ai")
    function = importlib.import_module("pydantic_ai.models.function")
    messages = importlib.import_module("pydantic_ai.messages")
    await client.remember("The key is in the blue jar.")
    prompts = list[list[str]]()

    def respond(history: Any, info: Any) -> Any:
        prompts.append([part.content for one in history for part in getattr(one, "parts", [])])
        return messages.ModelResponse(parts=[messages.TextPart("In the jar.")])

    memory = module.NewtonMemory(client, "talk", max_tokens=300)
    agent = ai.Agent(function.FunctionModel(respond), capabilities=[memory])
    first = await agent.run("Where is the key?")
    assert "blue jar" in prompts[0][0] and prompts[0][1:] == ["Where is the key?"]
    assert "blue jar" not in str(first.all_messages()), "the context is no part of the history"
    await agent.run("And the key of the shed?", message_history=first.all_messages())
    assert len([one for one in prompts[1] if "Known Information" in one]) <= 1
    log = [(one["role"], one["content"]) for one in await client.messages("talk")]
    assert log == [
        ("user", "Where is the key?"),
        ("assistant", "In the jar."),
        ("user", "And the key of the shed?"),
        ("assistant", "In the jar."),
    ]
