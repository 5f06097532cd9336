"""Every interface that stores a text says how many secrets of which kinds it removed from it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from newton.db.pool import Database
from tests.endpoint import endpoint, says
from tests.system.served import Api, served
from tests.system.typed import ok, typed

KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET = f"The bucket opens with {KEY}."
HARMLESS = "The bucket stands in the garden, [REDACTED:aws-key]."  # a marker that somebody typed
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def tool_call(name: str, **arguments: str) -> tuple[str, Any]:
    return "/mcp", {**RPC, "params": {"name": name, "arguments": arguments}}


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def writes(text: str) -> dict[str, tuple[str, Any]]:
    return {
        "a fact": ("/v1/memories", {"content": text}),
        "messages": ("/v1/sessions/s/messages", {"messages": said(text)}),
        "a turn": ("/v1/sessions/s/turns", {"input": text}),
        "a chat completion": ("/v1/chat/completions", {"messages": said(text)}),
        "a response": ("/v1/responses", {"input": text}),
        "a fact by MCP": tool_call("remember", content=text, source="own"),
        "an exchange by MCP": tool_call("note_exchange", session="s", user=text),
    }


OTHER_WRITES: dict[str, dict[str, Any]] = {
    "/v1/censors": {"trigger": "TEXT", "reason": "because"},
    "/v1/decisions": {
        "description": "TEXT",
        "confidence": 0.8,
        "category": "storage",
        "reasons": [{"kind": "analysis", "text": "it is"}],
    },
}


@pytest.fixture(scope="module")
async def api(behind: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    db, home = await Database.open(behind, size=4), tmp_path_factory.mktemp("data")
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, home, openai_base_url=model.url, openai_model="scripted") as made,
    ):
        yield made
    await db.close()


@pytest.mark.parametrize("written", writes(""))
async def test_an_answer_counts_the_secrets_that_were_removed(api: Api, written: str) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}"), **accept) as http:
        path, body = writes(HARMLESS)[written]
        harmless = (await http.post(path, json=body)).text.replace("\\", "").replace(" ", "")
        assert '"redacted":{}' in harmless or '"redacted"' not in harmless
        path, body = writes(SECRET)[written]
        answer = await http.post(path, json=body)
        assert answer.is_success and KEY not in answer.text
        assert '"redacted":{"aws-key":1}' in answer.text.replace("\\", "").replace(" ", "")


async def test_a_header_counts_what_was_removed_on_every_other_path(api: Api) -> None:
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}", "admin")) as http:
        for path, body in OTHER_WRITES.items():
            answer = await http.post(path, json=json.loads(json.dumps(body).replace("TEXT", SECRET)))
            assert answer.is_success, answer.text
            assert answer.headers["X-Newton-Redacted"] == "aws-key=1", path
            harmless = await http.post(path, json=json.loads(json.dumps(body).replace("TEXT", "the bucket")))
            assert "X-Newton-Redacted" not in harmless.headers, path


async def test_nothing_is_said_of_a_private_request(api: Api) -> None:
    async with api.http(await api.token(f"agent-{uuid4().hex[:8]}")) as http:
        answer = await http.post("/v1/chat/completions", json={"messages": said(SECRET), "store": False})
        assert answer.json()["newton"]["redacted"] == {}


def test_the_commands_say_it(home: Path) -> None:
    line = "Stored without 1 secret: 1 aws-key."
    assert line in ok(typed(home, "remember", SECRET))
    assert line in typed(home, "ask", SECRET).stderr
    file = home / "lines.ndjson"
    file.write_text(
        json.dumps({"type": "fact", "ref": "f", "content": f"And with {KEY}.", "at": "2026-01-01T00:00:00Z"})
    )
    assert line in ok(typed(home, "import", str(file)))
    note = home / "note.md"
    note.write_text(f"# Buckets\n\nThis one opens with {KEY}.\n")
    assert line in ok(typed(home, "ingest", str(note)))
