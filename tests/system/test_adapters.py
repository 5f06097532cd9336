"""The adapters of newton-client, with their frameworks where these are installed, on a daemon."""

import asyncio
import importlib
import json
import random
import sys
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest
import pytest_asyncio

from newton.providers.fakes import HashEmbedder
from tests.system.client_package import lay_out
from tests.system.served import Api

MESSAGES = [{"role": "user", "content": "Where is the key?"}, {"role": "assistant", "content": "In the blue jar."}]


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
    log = [(one["role"], one["content"]) for one in (await client.messages("talk"))["items"]]
    assert log == [
        ("user", "Where is the key?"),
        ("assistant", "In the jar."),
        ("user", "And the key of the shed?"),
        ("assistant", "In the jar."),
    ]


LABELS = ("a", "b", "c")
ITEM_VALUES: Sequence[dict[str, Any]] = (
    {"n": 1, "t": "x"},
    {"n": 2.5},
    {"n": -3, "d": {"x": True, "y": [1, "2"]}},
    {"t": None},
    {},
)
ITEM_FILTERS: Sequence[dict[str, Any] | None] = (
    None,
    {"n": 1},
    {"n": {"$ne": 1}},
    {"t": None},
    {"d": {"x": True}},
    {"d": {"y": [1, "2"]}},
)
ROUNDS = 60


def some_path(draw: random.Random, *, shortest: int, labels: Sequence[str] = LABELS) -> tuple[str, ...]:
    return tuple(draw.choices(labels, k=draw.randint(shortest, 3)))


def some_operation(draw: random.Random, base: Any) -> Any:
    """One operation of a store, on few namespaces and keys, so that most of them meet."""
    namespace, key = some_path(draw, shortest=1), draw.choice("kl")
    match draw.randint(0, 6):
        case 0:
            return base.GetOp(namespace, key)
        case 1:
            return base.SearchOp(some_path(draw, shortest=0), filter=draw.choice(ITEM_FILTERS), limit=500)
        case 2:
            return base.PutOp(namespace, key, None)
        case 3:
            labels, kinds = (*LABELS, "*"), draw.choices(("prefix", "suffix"), k=draw.randint(0, 3))
            conditions = tuple(base.MatchCondition(k, some_path(draw, shortest=1, labels=labels)) for k in kinds)
            depth, offset = draw.choice((None, 1, 2)), draw.choice((0, 0, 1))
            return base.ListNamespacesOp(conditions, depth, limit=draw.choice((2, 500)), offset=offset)
        case _:
            return base.PutOp(namespace, key, draw.choice(ITEM_VALUES), index=draw.choice((None, False, ["t"])))


def comparable(result: Any) -> Any:
    """A result without times, and without the order of a search and of fields, which a store may choose."""
    if isinstance(result, list):
        return sorted(map(comparable, cast("list[Any]", result)))
    if not hasattr(result, "key"):
        return result
    return result.namespace, result.key, json.dumps(result.value, sort_keys=True)


@pytest.mark.parametrize("kind", ["Client", "SyncClient"])
async def test_a_store_of_langgraph_answers_as_its_own_store_does(kind: str, api: Api, package: Any) -> None:
    module = adapter("langgraph", "langgraph")
    base, memory = (importlib.import_module(f"langgraph.store.{name}") for name in ("base", "memory"))
    token = await api.token("ana")
    with package.SyncClient(api.url, token=token) as blocking:
        async with package.Client(api.url, token=token) as client:
            ours = module.NewtonStore(blocking if kind == "SyncClient" else client)
            await compare_stores(ours, memory.InMemoryStore(), base, in_threads=kind == "SyncClient")


async def compare_stores(ours: Any, reference: Any, base: Any, *, in_threads: bool) -> None:
    """Give both stores the same operations; with `in_threads`, some to the synchronous method."""
    draw = random.Random(3)
    answered = 0
    for number in range(ROUNDS):
        batch = [some_operation(draw, base) for _ in range(draw.choice((1, 2, 4)))]
        expected = reference.batch(batch)
        for empty in [name for name, items in reference._data.items() if not items]:
            del reference._data[empty]  # it lists namespaces that have no item left
        run = asyncio.to_thread(ours.batch, batch) if in_threads and number % 2 else ours.abatch(batch)
        assert list(map(comparable, await run)) == list(map(comparable, expected)), batch
        answered += sum(map(bool, expected))
    assert answered > ROUNDS / 3, "most operations find nothing"


async def test_a_store_of_langgraph_ranks_as_its_own_store_does(client: Any) -> None:
    module = adapter("langgraph", "langgraph")
    memory, embedder = importlib.import_module("langgraph.store.memory"), HashEmbedder()

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [list(map(float, one)) for one in await embedder.embed(list(texts))]

    index = {"embed": embed, "dims": embedder.dimensions, "fields": ["text"]}
    stores = module.NewtonStore(client, index=["text"]), memory.InMemoryStore(index=index)
    for store in stores:
        for n, text in enumerate(
            ("The key is in the blue jar.", "The jar is blue.", "A jar of rain.", "Keys of brass.")
        ):
            await store.aput(("notes", str(n % 2)), str(n), {"text": text, "n": n})
        await store.aput(("notes", "0"), "hidden", {"text": "The blue jar.", "n": 9}, index=False)
        await store.adelete(("notes", "1"), "none")
    ours, theirs = [await one.asearch(("notes",), query="the blue jar", limit=4) for one in stores]
    assert [item.key for item in ours] == [item.key for item in theirs]
    assert [item.score for item in ours] == pytest.approx([item.score for item in theirs], abs=0.01)
    last = await stores[0].asearch(("notes",), query="the blue jar", filter={"n": {"$gt": 2}}, limit=9)
    assert [item.key for item in last] == ["3", "hidden"] and last[1].score is None
    found = await client.recall("Where is the key?", kinds=["item"])
    assert found["items"][0]["text"] == "The key is in the blue jar."


async def test_a_store_of_langgraph_says_what_it_cannot_do(api: Api, client: Any, package: Any) -> None:
    module = adapter("langgraph", "langgraph")
    base, store = importlib.import_module("langgraph.store.base"), module.NewtonStore(client)
    with pytest.raises(TypeError, match="SyncClient"):
        store.get(("a",), "k")
    with pytest.raises(NotImplementedError, match="TTL"):
        await store.aput(("a",), "k", {}, ttl=5)
    with pytest.raises(NotImplementedError, match="ttl"):
        await store.abatch([base.PutOp(("a",), "k", {}, ttl=5)])
    with pytest.raises(base.InvalidNamespaceError):
        await store.aput(("a.b",), "k", {})
    with pytest.raises(package.ApiError, match="11 parts"):
        await store.aput(("a",) * 11, "k", {})
    assert await store.aget((), "k") is None
    await store.aput(("a",), "k", {"n": 1})
    async with package.Client(api.url, token=await api.token("ana", "write")) as writer:
        with pytest.raises(package.ApiError, match="admin"):
            await module.NewtonStore(writer).adelete(("a",), "k")
    first = await store.aget(("a",), "k")
    await store.aput(("a",), "k", {"n": 2})
    second = await store.aget(("a",), "k")
    assert (first.created_at, second.value) == (second.created_at, {"n": 2}) and second.updated_at > first.updated_at


async def test_a_store_of_langgraph_reads_more_than_one_page(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("langgraph", "langgraph")
    monkeypatch.setattr(module, "PAGE_SIZE", 2)
    store = module.NewtonStore(client)
    for n in range(7):
        await store.aput(("many", str(n)), "k", {"n": n}, index=False)
    for limit, offset in ((5, 1), (4, 0), (9, 0), (0, 0)):
        found = await store.asearch(("many",), limit=limit, offset=offset)
        assert [item.value["n"] for item in found] == list(range(6, -1, -1))[offset : offset + limit]
        names = await store.alist_namespaces(limit=limit, offset=offset)
        assert names == [("many", str(n)) for n in range(7)][offset : offset + limit]
