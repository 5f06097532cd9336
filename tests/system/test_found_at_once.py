"""What is written through any interface has its vector before the answer, so the next read finds it by meaning."""

from pathlib import Path
from typing import Any

import pytest

from newton.db.pool import Database
from newton.errors import ProviderError
from newton.providers.fakes import HashEmbedder
from tests.endpoint import endpoint, says
from tests.system.served import served

SAID = [{"role": "user", "content": "The kiln stands in the shed."}]
RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
WRITES: dict[str, tuple[str, Any]] = {
    "a fact": ("/v1/memories", {"content": "The kiln stands in the shed."}),
    "messages": ("/v1/sessions/kiln/messages", {"messages": SAID}),
    "a turn": ("/v1/sessions/kiln/turns", {"input": "The kiln stands in the shed."}),
    "a chat completion": ("/v1/chat/completions", {"messages": SAID}),
    "a stream": ("/v1/chat/completions", {"messages": SAID, "stream": True}),
    "a response": ("/v1/responses", {"input": "The kiln stands in the shed."}),
    "a fact by MCP": ("/mcp", {**RPC, "params": {"name": "remember", "arguments": {"content": "The kiln is hot."}}}),
    "an exchange by MCP": (
        "/mcp",
        {**RPC, "params": {"name": "note_exchange", "arguments": {"session": "kiln", "user": "The kiln is hot."}}},
    ),
}


@pytest.mark.parametrize("written", WRITES)
async def test_what_is_written_is_embedded_before_the_answer(db: Database, tmp_path: Path, written: str) -> None:
    path, body = WRITES[written]
    accept = {"Accept": "application/json, text/event-stream"}
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="scripted") as api,
        api.http(await api.token("ana"), **accept) as http,
    ):
        answer = await http.post(path, json=body)
        assert answer.is_success, answer.text
        assert await api.rows("ana", "memory.embeddings") > 0
        assert await api.rows("ana", "memory.outbox") == 0


async def test_an_embedder_that_fails_leaves_the_work_to_the_job(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: HashEmbedder, texts: object) -> None:
        raise ProviderError("The embedding model is down.", hint="Start it.")

    async with served(db, tmp_path) as api, api.http(await api.token("ana")) as http:
        with monkeypatch.context() as broken:
            broken.setattr(HashEmbedder, "embed", fail)
            answer = await http.post("/v1/sessions/kiln/messages", json={"messages": SAID})
        assert answer.status_code == 201, answer.text
        assert await api.rows("ana", "memory.outbox") == 1
