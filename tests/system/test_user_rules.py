"""A rule of the user is in force at once through every interface through which a person speaks."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import pytest

from newton.db.pool import Database
from tests.system.served import served

RULE = "Never suggest restaurants with live music"
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


async def by_turn(http: httpx2.AsyncClient, text: str) -> None:
    (await http.post("/v1/sessions/s/turns", json={"input": text})).raise_for_status()


async def by_openai(http: httpx2.AsyncClient, text: str) -> None:
    body = {"model": "newton", "messages": [{"role": "user", "content": text}]}
    (await http.post("/v1/chat/completions", json=body)).raise_for_status()


async def by_messages(http: httpx2.AsyncClient, text: str) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    (await http.post("/v1/sessions/s/messages", json=body)).raise_for_status()


@pytest.mark.parametrize("tell", [by_turn, by_openai, by_messages])
async def test_a_rule_is_in_force_at_once_and_a_later_line_replaces_it(
    db: Database, tmp_path: Path, tell: Callable[[httpx2.AsyncClient, str], Awaitable[None]]
) -> None:
    async with served(db, tmp_path, quote_without_model=True) as api, api.http(await api.token("told")) as http:
        await tell(http, f"Thanks. {RULE}.")
        await tell(http, "From now on answer in French.")
        await tell(http, f"The waiter said: {RULE}. Was he rude?")
        await tell(http, "From now on answer in German.")
        lines = (await http.get("/v1/identity")).json()["lines"]
        assert [line["text"] for line in lines] == [RULE, "From now on answer in German"]
        assert all(line["said_on"] for line in lines)
        assert (await http.get("/v1/identity/proposals")).json()["items"] == []


async def test_what_an_agent_reports_over_mcp_waits_and_the_answer_says_so(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path) as api, api.http(await api.token("noted", "write"), **MCP_HEADERS) as http:
        call = {"name": "note_exchange", "arguments": {"session": "s", "user": f"{RULE}.", "assistant": "Yes."}}
        answer = await http.post("/mcp", json={**RPC, "params": call})
        assert json.loads(answer.json()["result"]["content"][0]["text"])["proposed_rules"] == [RULE]
        assert (await http.get("/v1/identity")).json()["lines"] == []
        assert [one["text"] for one in (await http.get("/v1/identity/proposals")).json()["items"]] == [RULE]
