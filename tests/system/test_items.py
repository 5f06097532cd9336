"""Items by the client: kept, found by meaning, in contexts, and each agent's own."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
import pytest_asyncio

from newton.client import ApiError, Client
from newton.heart.items.item_value import MAX_NAMESPACE_PARTS, MAX_VALUE_CHARACTERS, MAX_VALUE_DEPTH
from newton.ids import derive_agent_id
from tests.support import has_code
from tests.system.lines import everything
from tests.system.served import Api

ANA = ("users", "ana")
SECRET = "sk-4eC39HqLyjWDarjtT1zdp7dc"


@pytest_asyncio.fixture
async def ana(api: Api) -> AsyncGenerator[Client]:
    async with api.client(await api.token("ana")) as client:
        yield client


async def search(client: Client, **fields: Any) -> list[dict[str, Any]]:
    return (await client.search_items(**fields))["items"]


async def test_an_item_is_stored_read_searched_and_deleted(ana: Client) -> None:
    stored = await ana.put_item(ANA, "food", {"text": "Ana likes pizza.", "stars": 5})
    await ana.put_item(ANA, "music", {"text": "Ana plays the cello.", "stars": 4}, index=["text"])
    await ana.put_item(("users", "ben"), "food", {"text": "Ben likes soup."}, index=False)
    read = await ana.item(ANA, "food")
    assert read["value"] == {"text": "Ana likes pizza.", "stars": 5} and read["namespace"] == list(ANA)
    assert [one["key"] for one in await search(ana, query="Who plays the cello?")] == ["music", "food", "food"]
    assert [one["key"] for one in await search(ana, namespace=ANA, filter={"stars": {"$gte": 5}})] == ["food"]
    assert [one["namespace"][1] for one in await search(ana, limit=1)] == ["ben"]
    assert (await ana.item_namespaces())["items"] == [["users", "ana"], ["users", "ben"]]
    assert (await ana.item_namespaces(prefix=["users"], suffix=["*", "ben"], max_depth=1))["items"] == [["users"]]
    assert (await ana.delete_item(ANA, "food"))["memory_ids"] == [stored["memory_id"]]
    for missing in (ana.item(ANA, "food"), ana.delete_item(ANA, "food")):
        with pytest.raises(ApiError, match="no item 'food' in the namespace users/ana", check=has_code("not_found")):
            await missing


async def test_the_text_of_an_item_is_recalled_and_enters_contexts_at_once(ana: Client) -> None:
    first = await ana.put_item(ANA, "door", {"text": "The spare key is under the blue pot."})
    found = await ana.recall("Where is the spare key?", kinds=["item"])
    assert [one["memory_id"] for one in found["items"]] == [first["memory_id"]]
    assert found["items"][0]["cosine"] > 0, "it is embedded before the answer"
    assert "blue pot" in (await ana.context("Where is the spare key?", max_tokens=500))["text"]
    second = await ana.put_item(ANA, "door", {"text": "The spare key is in the red drawer."})
    text = (await ana.context("Where is the spare key?", max_tokens=500))["text"]
    assert "red drawer" in text and "blue pot" not in text
    memory = await ana.expand(second["memory_id"])
    assert (memory["kind"], memory["trust"], memory["origin"]) == ("item", "user", "http")
    assert [(one["type"], one["memory_id"]) for one in memory["links"]] == [("supersedes", first["memory_id"])]
    await ana.delete_item(ANA, "door")
    assert (await ana.recall("Where is the spare key?"))["items"] == []


async def test_secrets_are_redacted(api: Api, ana: Client) -> None:
    await ana.put_item(ANA, "keys", {"main": SECRET, "all": [{"spare": f"use {SECRET}"}]})
    assert ana.redacted == {"api-key": 1}, "one secret, in two places"
    assert SECRET not in "".join(await everything(api.db, derive_agent_id("ana")))


def deep(levels: int) -> dict[str, Any]:
    return {"in": deep(levels - 1)} if levels > 1 else {}


async def test_what_is_beyond_a_limit_is_refused_with_its_reason(ana: Client) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"namespace": []}, "namespace"),
        ({"namespace": ["x"] * (MAX_NAMESPACE_PARTS + 1)}, "11 parts"),
        ({"namespace": ["x" * 150] * 3}, "450 characters"),
        ({"namespace": [SECRET]}, "secret"),
        ({"key": ""}, "empty"),
        ({"key": "x" * 201}, "201 characters"),
        ({"key": "a\nb"}, "one line"),
        ({"value": {"a": "x" * MAX_VALUE_CHARACTERS}}, "200,000"),
        ({"value": deep(MAX_VALUE_DEPTH + 1)}, "levels deep"),
        ({"value": {"a": "x\0"}}, "NUL"),
        ({"value": {"a": float("nan")}}, "finite"),
        ({"value": deep(300)}, "nested deeper"),
        ({"value": [1]}, "value"),
        ({"index": ["a[x]"]}, "path of a field"),
        ({"index": True}, "index"),
        ({"ttl": 5}, "ttl"),
    ]
    for fields, reason in refused:
        body: dict[str, Any] = {"namespace": ["a"], "key": "k", "value": {}, **fields}
        with pytest.raises(ApiError, match=reason, check=has_code("invalid_input")):
            await ana.request("PUT", "/v1/items", body=body)
    searches: list[dict[str, Any]] = [{"limit": 201}, {"offset": -1}, {"filter": {"a": {"$in": []}}}, {"query": ""}]
    for fields in searches:
        with pytest.raises(ApiError, check=has_code("invalid_input")):
            await ana.search_items(**fields)
    with pytest.raises(ApiError, check=has_code("invalid_input")):
        await ana.item_namespaces(max_depth=0)
    assert await search(ana) == []
    largest = {"a": "x" * (MAX_VALUE_CHARACTERS - 100), "b": deep(5)}
    signs = [chr(0x20000 + 41 * n) for n in range(600)]  # four bytes each, and nothing to compress
    widest, key = ["".join(signs[n : n + 40]) for n in range(0, 400, 40)], "".join(signs[400:])
    await ana.put_item(widest, key, largest)
    assert (await ana.item(widest, key))["value"] == largest


async def test_only_the_own_agent_and_only_its_admin_deletes(api: Api, ana: Client) -> None:
    await ana.put_item(ANA, "food", {"text": "Ana likes pizza."})
    async with (
        api.client(await api.token("ana", "write")) as writer,
        api.client(await api.token("ana", "read")) as reader,
    ):
        await writer.put_item(ANA, "food", {"text": "Ana likes soup."})
        assert (await reader.item(ANA, "food"))["value"] == {"text": "Ana likes soup."}
        for refused in (writer.delete_item(ANA, "food"), reader.put_item(ANA, "food", {})):
            with pytest.raises(ApiError, check=has_code("forbidden")):
                await refused
    async with api.client(await api.token("ben")) as ben:
        assert await search(ben) == [] and (await ben.item_namespaces())["items"] == []
        for missing in (ben.item(ANA, "food"), ben.delete_item(ANA, "food")):
            with pytest.raises(ApiError, check=has_code("not_found")):
                await missing
    assert (await ana.item(ANA, "food"))["value"] == {"text": "Ana likes soup."}


async def test_concurrent_writers_leave_one_item(api: Api, ana: Client) -> None:
    await asyncio.gather(*(ana.put_item(["a"], "k", {"text": f"text {n}"}) for n in range(8)))
    assert await api.rows("ana", "heart.items") == 1
    async with api.db.transaction(derive_agent_id("ana")) as tx:
        states = await tx.fetch("select state from memory.memories where kind = 'item' order by position")
    assert [row[0] for row in states] == ["SUPERSEDED"] * 7 + ["ACTIVE"]


async def test_items_go_with_their_agent_to_another_one(api: Api, ana: Client) -> None:
    await ana.put_item(ANA, "food", {"text": "Ana likes pizza.", "stars": 4.5, "none": None})
    await ana.put_item(ANA, "music", {"text": "Ana plays the cello."}, index=False)
    before, exported = await search(ana), await ana.request("GET", "/v1/export")
    assert len(before) == 2
    async with api.http(await api.token("ben")) as http, api.client(await api.token("ben")) as ben:
        (await http.post("/v1/import", content=exported.content)).raise_for_status()
        assert await search(ben) == before
        assert [one["memory_id"] for one in (await ben.recall("Who likes pizza?"))["items"]] == [before[1]["memory_id"]]
