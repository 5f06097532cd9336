"""MCP, as its official client speaks it, over pipes and with a daemon."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolRequestParams, JSONRPCError, jsonrpc_message_adapter

from newton.client import ApiError
from newton.client.connection import DaemonConnection
from newton.runtime.access.tokens import TokenScope
from newton.runtime.mcp.server import INSTRUCTIONS, answer_call, describe_tool
from newton.runtime.tools.tool_registry import TOOLS
from newton.runtime.wiring import AgentServices
from tests.system.daemons import Daemon
from tests.system.typed import create_agents, ok, typed

READING = {name for name, tool in TOOLS.items() if tool.effect == "reads"}
CORE = {"context", "remember", "recall", "expand", "note_exchange", "decide", "review", "forget"}
DESTROYING = {"forget", "delete_document", "retire_censor", "dismiss_procedure"}


@pytest.fixture(scope="module")
def served(served: Daemon) -> Daemon:
    served.begins("http", "bob", "guarded")
    return served


@asynccontextmanager
async def speaking(url: str, token: str, tools: str = "all", **headers: str) -> AsyncGenerator[Client]:
    shown = {"Authorization": f"Bearer {token}", **headers}
    async with (
        httpx2.AsyncClient(headers=shown, timeout=60) as plain,
        Client(streamable_http_client(f"{url}/mcp?tools={tools}", http_client=plain)) as client,
    ):
        yield client


async def told(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return result.structured_content


async def lived(client: Client) -> None:
    """A small life: every verb once, and what goes wrong with some."""
    offered = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(offered) == set(TOOLS)
    assert all(tool.description and len(tool.description) >= 60 for tool in offered.values())
    hints = {name: tool.annotations for name, tool in offered.items() if tool.annotations}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == READING
    assert {name for name, hint in hints.items() if hint.destructive_hint} == DESTROYING
    kept = await told(client, "remember", content="The lighthouse is painted red.", source="own")
    assert "Did you mean 'remember'?" in (await refused(client, "remembr", content="x"))["hint"]
    assert "Did you mean 'limit'?" in (await refused(client, "recall", query="x", limt=3))["hint"]
    assert "contnt: There is no such field" in (await refused(client, "remember", contnt="x"))["error"]
    assert "`recall` shows the ids" in (await refused(client, "expand", memory_id="lamp"))["hint"]
    found = await told(client, "recall", query="What is painted red?")
    assert kept["memory_id"] in [one["memory_id"] for one in found["items"]]
    await given(client)
    whole = await told(client, "expand", memory_id=kept["memory_id"])
    assert (whole["kind"], whole["trust"]) == ("fact", "agent")  # a model told it
    choice: Any = {"description": "Paint it white.", "confidence": 0.8, "category": "paint"}
    assert (await refused(client, "decide", **choice))["code"] == "guardrail_blocked"
    made = await told(client, "decide", **choice, reasons=[{"kind": "empirical", "text": "White is seen from afar."}])
    await told(client, "review", decision_id=made["decision_id"], outcome="success")
    assert (await told(client, "calibration", category="paint"))["n"] == 1
    assert "once" in (await refused(client, "review", decision_id=made["decision_id"], outcome="failure"))["hint"]
    assert "confidence" in (await refused(client, "decide", description="x", confidence=7))["error"]
    assert (await refused(client, "decide", description="x", confidence=0.5, trust="operator"))["hint"]
    await forgotten(client, kept["memory_id"])


async def given(client: Client) -> None:
    """A context, and one for which there is no room."""
    overrides = {"weights": {"recency": 0.4}}
    asked = {"input": "Which colour has the lighthouse?", "max_tokens": 500, "overrides": overrides}
    context = await told(client, "context", **asked)
    assert "lighthouse" in context["text"]
    assert (context["overrides"], context["truncated"]) == (overrides, False)  # S001-4, S001-6
    tiny = await told(client, "context", input=asked["input"], max_tokens=2)
    assert (tiny["text"], tiny["nothing_relevant"], tiny["truncated"]) == ("", True, True)


async def forgotten(client: Client, memory_id: str) -> None:
    """Nothing is deleted without the token of what it is now."""
    plan = await told(client, "forget", memory_id=memory_id)
    assert "lighthouse" in plan["text"] and plan["token"]
    assert (await told(client, "expand", memory_id=memory_id))["text"] == "The lighthouse is painted red."
    forged = f"{plan['token'][:-1]}{'0' if plan['token'][-1] != '0' else '1'}"
    for token in (forged, "yes", ""):
        assert (await refused(client, "forget", memory_id=memory_id, token=token))["code"] == "conflict"
    other = await told(client, "remember", content="The lighthouse keeper is called Ole.")
    assert (await refused(client, "forget", memory_id=other["memory_id"], token=plan["token"]))["code"] == "conflict"
    await told(client, "retract", memory_id=memory_id)  # it is no longer what the token was made for
    assert (await refused(client, "forget", memory_id=memory_id, token=plan["token"]))["code"] == "conflict"
    plan = await told(client, "forget", memory_id=memory_id)
    assert (await told(client, "forget", memory_id=memory_id, token=plan["token"], reason="it was a test"))["items"]
    assert (await refused(client, "expand", memory_id=memory_id))["code"] == "not_found"


async def test_a_client_over_http_has_every_verb(served: Daemon) -> None:
    async with speaking(served.url, served.token, **{"X-Newton-Agent": "http"}) as client:
        await lived(client)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["data", pytest.param("no-daemon", marks=pytest.mark.slow)])
async def test_a_client_over_pipes_has_every_verb(served: Daemon, house: Path, folder: str) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    env = {**bare, "NEWTON_DATA_DIR": str(house / folder), "NEWTON_EMBEDDING_PROVIDER": "none"}
    served.begins(agent := f"pipes-{folder}")
    words = ["-m", "newton", "mcp", "--agent", agent, "--tools", "all"]
    async with Client(StdioServerParameters(command=sys.executable, args=words, env=env, cwd=str(house))) as client:
        await lived(client)


@pytest.fixture
def reader(served: Daemon, house: Path) -> str:
    """A token that may only read."""
    create_agents(house, "ana")
    return ok(typed(house, "tokens", "create", "reader", "--scope", "read", "--agent", "ana")).split()[0]


async def test_a_token_reaches_as_far_as_its_scope_and_to_its_own_agent(served: Daemon, reader: str) -> None:
    # S9
    async with speaking(served.url, reader) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING
        assert "write" in (await refused(client, "remember", content="x"))["error"]
    async with speaking(served.url, served.token, **{"X-Newton-Agent": "bob"}) as client:
        kept = await told(client, "remember", content="The harbour is blue.")
    async with speaking(served.url, reader) as client:
        assert (await refused(client, "expand", memory_id=kept["memory_id"]))["code"] == "not_found"


async def test_a_client_has_the_core_and_the_sets_that_it_asks_for(served: Daemon) -> None:
    bob = {"X-Newton-Agent": "bob"}
    async with speaking(served.url, served.token, "", **bob) as client:
        core = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert core.keys() == CORE and "overrides" not in core["context"].input_schema["properties"]
        missing = await refused(client, "calibration")
        assert missing["code"] == "not_found" and "the set 'decisions'" in missing["error"]
        assert "`/mcp?tools=decisions`" in missing["hint"]
    async with speaking(served.url, served.token, "decisions,contexts", **bob) as client:
        more = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert more.keys() == {n for n, one in TOOLS.items() if one.core or one.group in ("decisions", "contexts")}
        assert "overrides" in more["context"].input_schema["properties"]
        assert (await told(client, "calibration"))["n"] >= 0
    with served.client(Accept="application/json, text/event-stream") as plain:
        call: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        answer = plain.post("/mcp?tools=decision", json=call)
    assert answer.status_code == 422 and "Did you mean 'decisions'?" in answer.text


def test_the_definitions_of_the_core_are_short_and_name_no_other_tool() -> None:
    tools = [describe_tool(name, TOOLS[name], frozenset()) for name in CORE]
    definitions = "".join(one.model_dump_json(by_alias=True, exclude_none=True) for one in tools)
    assert len(definitions) <= 12_000
    mentioned = set(re.findall(r"`(\w+)`", f"{definitions}{INSTRUCTIONS}")) & TOOLS.keys()
    assert len(mentioned) >= 5 and mentioned <= CORE


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer nwt_x"}, 401),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Host": "elsewhere.example"}, 403),
        ({}, 200),
    ],
)
def test_only_those_with_a_token_who_mean_this_host_get_in(
    served: Daemon, headers: dict[str, str], status: int
) -> None:
    # S9
    call: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    shown = {"Accept": "application/json, text/event-stream", **headers}
    with served.client() as client:
        assert client.post("/mcp", json=call, headers=shown).status_code == status
        assert client.post(f"/mcp?token={served.token}", json=call, headers={"Authorization": ""}).status_code == 401


def test_a_refused_request_is_answered_in_json_rpc(served: Daemon) -> None:
    call: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with served.client(Authorization="Bearer nwt_x") as client:
        answer = client.post("/mcp", json=call)
    body = jsonrpc_message_adapter.validate_python(answer.json(), by_name=False)
    assert answer.headers["content-type"] == "application/json" and isinstance(body, JSONRPCError)
    assert "token" in body.error.message and body.error.data["type"] == "urn:newton:unauthorized"


async def test_the_client_of_newton_reads_the_refusal_of_a_tool(served: Daemon) -> None:
    async with DaemonConnection(served.url, token="nwt_x") as connection:
        with pytest.raises(ApiError) as raised:
            await connection.call_tool("recall", {"query": "harbour"})
    assert raised.value.code == "unauthorized" and "token" in str(raised.value)


def test_nobody_keeps_a_connection_of_it_open(served: Daemon) -> None:
    # R11
    with served.client(Accept="application/json, text/event-stream") as client:
        for _ in range(20):
            answer = client.get("/mcp")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert client.get("/v1/frames").status_code == 200


def test_a_censor_stops_what_a_client_wants_to_keep(served: Daemon, house: Path) -> None:
    ok(typed(house, "censors", "add", "passphrase", "--reason", "secret", "--action", "block", "--agent", "guarded"))
    call = {"name": "remember", "arguments": {"content": "The passphrase is seven words long."}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with served.client(**{"X-Newton-Agent": "guarded", "Accept": "application/json, text/event-stream"}) as client:
        result = client.post("/mcp", json=body).json()["result"]
    assert result["isError"] and result["structuredContent"]["code"] == "censor_blocked"
    assert "passphrase" not in ok(typed(house, "recall", "words long", "--agent", "guarded", "--json"))


class Broken:
    """Somebody whose database fails at everything, with words that are nobody's business."""

    tool_sets = frozenset[str]()

    @property
    def newton(self) -> AgentServices:
        raise asyncpg.UniqueViolationError("Key (content)=(the passphrase) already exists.")

    def has_scope(self, scope: TokenScope) -> bool:
        return True


BROKEN: Any = Broken()


@pytest.mark.failing_parts("MCP request")
async def test_no_words_of_the_inside_get_out(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # S3
    result = await answer_call(BROKEN, CallToolRequestParams(name="recall", arguments={"query": "x"}))
    assert result.is_error and result.structured_content["code"] == "newton_error" and result.structured_content["hint"]
    assert [vars(one)["error"] for one in caplog.records] == ["UniqueViolationError"]
    assert "passphrase" not in f"{result}{[vars(one) for one in caplog.records]}{capsys.readouterr()}"


@pytest.mark.parametrize("unkept", ["a NUL \0", "half \ud800 of it", {"deep \0": []}])
async def test_what_cannot_be_kept_is_refused_by_any_door(unkept: object) -> None:
    # S3
    result = await answer_call(BROKEN, CallToolRequestParams(name="remember", arguments={"content": unkept}))
    assert result.is_error and result.structured_content["code"] == "invalid_input"


async def test_a_contradiction_is_seen_and_settled_through_every_interface(served: Daemon, house: Path) -> None:
    # S002-16: a model's word contests what a person told, and never supersedes it
    served.begins("http", "contested")
    ana = {"subject": "Ana", "attribute": "lives in"}
    who = {"X-Newton-Agent": "contested"}
    mine = ("--agent", "contested")
    await asyncio.to_thread(
        typed, house, "remember", "Ana lives in Oslo.", "--subject", "Ana", "--attribute", "lives in", *mine
    )
    async with speaking(served.url, served.token, **who) as client:
        kept = await told(client, "remember", content="Ana lives in Bergen.", source="own", **ana)
        (seen,) = (await told(client, "conflicts"))["items"]
        assert (seen["newer"]["text"], seen["older"]["text"]) == ("Ana lives in Bergen.", "Ana lives in Oslo.")
        error = await refused(client, "settle_conflict", memory_id=kept["memory_id"], keep="newer")
        assert "Ask the person" in error["hint"]
    headers = {"Authorization": f"Bearer {served.token}", **who}
    async with httpx2.AsyncClient(base_url=served.url, headers=headers) as http:
        (pair,) = (await http.get("/v1/conflicts")).json()["items"]
        assert pair["newer"]["trust"] == "agent"
        listed = ok(await asyncio.to_thread(typed, house, "conflicts", *mine))
        assert "Ana lives in Bergen.\n  older: " in listed
        settle = ("conflicts", "settle", kept["memory_id"], "newer", *mine)
        assert "1 conflict settled." in ok(await asyncio.to_thread(typed, house, *settle))
        assert (await http.get("/v1/conflicts")).json()["items"] == []
        again = await http.post(f"/v1/conflicts/{pair['newer']['memory_id']}/settle", json={"keep": "both"})
        assert again.status_code == 404
    assert ok(await asyncio.to_thread(typed, house, "conflicts", *mine)) == "No facts contradict each other.\n"
