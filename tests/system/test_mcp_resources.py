"""Resources and prompts of MCP, as the official client reads them."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import INVALID_PARAMS, Resource, TextContent, TextResourceContents

from newton.runtime.mcp.resources import PAGE_SIZE, PROMPTS, RESOURCES, TEMPLATES
from tests.system.served import Api

PAGE = Path(__file__).parents[2] / "docs" / "clients" / "mcp.md"


@asynccontextmanager
async def connected(api: Api, agent: str) -> AsyncGenerator[Client]:
    """An MCP client of the agent whose token may only read."""
    headers = {"Authorization": f"Bearer {await api.token(agent, 'read')}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{api.url}/mcp?tools=all", http_client=http)) as client,
    ):
        yield client


async def read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert (content.uri, content.mime_type) == (uri, "application/json")
    return json.loads(content.text)


async def listed(client: Client) -> list[Resource]:
    """All pages of the list."""
    page = await client.list_resources()
    found = list(page.resources)
    while page.next_cursor:
        page = await client.list_resources(cursor=page.next_cursor)
        assert len(page.resources) <= PAGE_SIZE
        found += page.resources
    return found


async def prompt(client: Client, name: str, **arguments: str) -> str:
    (message,) = (await client.get_prompt(name, arguments)).messages
    assert message.role == "user" and isinstance(message.content, TextContent)
    return message.content.text


async def test_every_resource_is_listed_and_read_with_a_token_that_may_only_read(api: Api) -> None:
    async with api.client(await api.token("ana")) as writer, connected(api, "ana") as client:
        fact = await writer.remember("The mill is painted red.")
        made = await writer.decide(
            "Paint the mill", confidence=0.7, reasons=[{"kind": "analysis", "text": "It fades."}]
        )
        await writer.append_messages("paint & brush", [{"role": "user", "content": "Which red?"}])
        await writer.add_censor("sell the mill", reason="it is rented", action="block")
        await writer.propose_identity("instruction", "Answer in metric units.")
        await writer.accept_proposal((await writer.proposals())["items"][0]["line_id"])
        found = {one.uri: one for one in await listed(client)}
        session = "newton://sessions/paint%20%26%20brush"
        assert found.keys() >= {one.uri for one in RESOURCES} | {session}
        decision, memory = f"newton://decisions/{made['decision_id']}", f"newton://memories/{fact['memory_id']}"
        assert found[memory].title == "The mill is painted red." and decision in found
        for uri in found:
            assert await read(client, uri)
        assert (await read(client, memory))["text"] == "The mill is painted red."
        assert (await read(client, decision))["reasons"][0]["text"] == "It fades."
        assert [one["content"] for one in (await read(client, session))["items"]] == ["Which red?"]
        assert (await read(client, f"{session}?first=1"))["items"] == []
        assert (await read(client, f"{memory}?offset=4&limit=4"))["text"] == "mill"
        assert [one["trigger"] for one in (await read(client, "newton://censors"))["items"]] == ["sell the mill"]
        assert [one["text"] for one in (await read(client, "newton://identity"))["lines"]] == [
            "Answer in metric units."
        ]


@pytest.mark.slow
async def test_the_list_of_resources_is_read_page_by_page(api: Api) -> None:
    many = PAGE_SIZE + 3
    async with api.client(await api.token("ana")) as writer, connected(api, "ana") as client:
        for n in range(many):
            await writer.append_messages(f"day {n}", [{"role": "user", "content": f"The wind was {n} knots."}])
        uris = [one.uri for one in await listed(client)]
        sessions = [uri for uri in uris if uri.startswith("newton://sessions/")]
        memories = [uri for uri in uris if uri.startswith("newton://memories/")]
        assert sessions == [f"newton://sessions/day%20{n}" for n in reversed(range(many))]
        assert len(set(memories)) == len(memories) >= many, "messages, and what was learnt of them"
        assert len(uris) == len(RESOURCES) + many + len(memories)
        with pytest.raises(MCPError, match="cursor is invalid") as error:
            await client.list_resources(cursor="bm9uc2Vuc2U")
    assert error.value.code == INVALID_PARAMS


ABSENT = {
    "newton://memories/deadbeef": "not_found",
    "newton://decisions/deadbeef": "not_found",
    "newton://sessions/nowhere": "not_found",
    "newton://secrets": "not_found",
    "file:///etc/passwd": "not_found",
    "newton://sessions/nul%00": "invalid_input",
    "newton://sessions/nowhere?first=minus": "invalid_input",
}


async def test_a_resource_that_does_not_exist_is_an_error_of_the_protocol(api: Api) -> None:
    async with connected(api, "ana") as client:
        for uri, code in ABSENT.items():
            with pytest.raises(MCPError) as error:
                await client.read_resource(uri)
            assert error.value.code == INVALID_PARAMS
            assert (error.value.data["type"], error.value.data["uri"]) == (f"urn:newton:{code}", uri)


async def test_resources_and_prompts_show_only_the_rows_of_the_calling_agent(api: Api) -> None:
    # S9
    async with api.client(await api.token("bob")) as writer:
        fact = await writer.remember("The vault opens at noon.")
        made = await writer.decide("Open the vault", confidence=0.7, reasons=[{"kind": "analysis", "text": "noon"}])
        await writer.append_messages("vault", [{"role": "user", "content": "The vault is heavy."}])
        await writer.add_censor("sell the vault", reason="it is rented", action="block")
    async with connected(api, "ana") as client:
        assert {one.uri for one in await listed(client)} == {one.uri for one in RESOURCES}
        assert (await read(client, "newton://censors"))["items"] == []
        paths = (f"memories/{fact['memory_id']}", f"decisions/{made['decision_id']}", "sessions/vault")
        for path in paths:
            with pytest.raises(MCPError) as error:
                await client.read_resource(f"newton://{path}")
            assert error.value.data["type"] == "urn:newton:not_found"
        assert "noon" not in await prompt(client, "with-memory", query="When does the vault open?")
        assert "vault" not in await prompt(client, "review-decisions")


async def test_prompts_bring_memory_to_the_model_of_the_client(api: Api) -> None:
    async with api.client(await api.token("ana")) as writer, connected(api, "ana") as client:
        assert "No decision waits" in await prompt(client, "review-decisions")
        await writer.remember("The ferry to Texel leaves at nine.")
        made = await writer.decide(
            "Take the ferry", confidence=0.7, reasons=[{"kind": "analysis", "text": "It is dry."}]
        )
        asked = await prompt(client, "with-memory", query="When does the ferry to Texel leave?")
        assert "leaves at nine" in asked and asked.endswith("When does the ferry to Texel leave?")
        review = await prompt(client, "review-decisions")
        assert made["decision_id"][-8:] in review and "Take the ferry" in review and "70%" in review
        assert "No decision waits" in await prompt(client, "review-decisions", category="finance")


REFUSED: list[tuple[str, dict[str, str]]] = [
    ("nonsense", {}),
    ("with-memory", {}),
    ("with-memory", {"query": "x", "colour": "red"}),
    ("review-decisions", {"category": ""}),
]


async def test_a_prompt_that_cannot_be_written_is_an_error_of_the_protocol(api: Api) -> None:
    async with connected(api, "ana") as client:
        for name, arguments in REFUSED:
            with pytest.raises(MCPError) as error:
                await client.get_prompt(name, arguments)
            assert error.value.code == INVALID_PARAMS and error.value.data["hint"], (name, arguments)
            assert "tool" not in error.value.message


async def test_the_page_names_what_is_listed(api: Api) -> None:
    text = PAGE.read_text(encoding="utf-8")
    async with connected(api, "ana") as client:
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        names = {one.name: one for one in (await client.list_prompts()).prompts}
    assert templates == [one.uri for one in TEMPLATES]
    assert names.keys() == PROMPTS.keys()
    assert [(one.name, one.required) for one in names["with-memory"].arguments or ()] == [
        ("query", True),
        ("session", False),
    ]
    assert [one for one in (*(kind.uri for kind in (*RESOURCES, *TEMPLATES)), *names) if f"`{one}`" not in text] == []
