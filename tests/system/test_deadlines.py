"""The deadline of a request through each interface: refused without a complete result, or answered with a line."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from newton.client import ApiError
from newton.db.pool import Database
from newton.memory import vectors
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder
from newton.runtime.transfer import importer as importing
from newton.runtime.transfer.import_source import read_file
from tests.endpoint import says
from tests.scenarios.test_sources import locked
from tests.support import has_code
from tests.system.lines import document, importer, written
from tests.system.scripted import talking_within
from tests.system.served import Api

UNSEARCHED = "Not searched for this input"
SOON = {"X-Newton-Timeout": "0.4"}


async def test_a_context_and_a_search_are_refused_at_the_deadline(api: Api, dsn: str) -> None:
    token = await api.token("ana")
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"query": "x"}},
    }
    rpc = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    async with api.http(token, **SOON) as http, api.client(token) as client:
        await http.post("/v1/memories", json={"content": "The ferry is called Artemis."})
        async with locked(dsn, "memory.postings"):
            answers = [
                await http.post("/v1/context", json={"input": "the ferry"}),
                await http.post("/v1/recall", json={"query": "the ferry"}),
            ]
            partial = await http.post(
                "/v1/context", json={"input": "the ferry", "allow_partial": True}, headers={"X-Newton-Timeout": "3"}
            )
            tool = await http.post("/mcp", json=call, headers=rpc)
            client.max_attempts = 1
            with pytest.raises(ApiError, check=has_code("timeout")):
                await client.recall("the ferry", timeout_seconds=0.4)
            with pytest.raises(ApiError, check=has_code("timeout")):
                await client.context("the ferry", timeout_seconds=0.4)
        whole = await http.post("/v1/context", json={"input": "the ferry"}, headers={"X-Newton-Timeout": "30"})
        refused = await http.post("/v1/context", json={"input": "the ferry"}, headers={"X-Newton-Timeout": "soon"})
    for answer in answers:
        problem = answer.json()
        assert (answer.status_code, problem["type"]) == (503, "urn:newton:timeout")
        assert int(answer.headers["retry-after"]) > 0
        assert "within 0.4 seconds" in problem["detail"] and "It waited for: " in problem["detail"]
        assert "X-Newton-Timeout" in problem["hint"]
    late = partial.json()
    assert (partial.status_code, late["nothing_relevant"]) == (200, False)
    assert f"{UNSEARCHED}, because it took too long or failed: memories by words" in late["text"]
    assert "Artemis" in late["text"], "the search by meaning had its results"
    assert "timeout" in tool.text and "within 0.4 seconds" in tool.text
    assert not whole.json()["missing"] and UNSEARCHED not in whole.json()["text"]
    assert (refused.status_code, "x-newton-timeout" in refused.text.lower()) == (422, True)


async def test_turns_of_each_protocol_go_on_with_what_was_found(tmp_path: Path, dsn: str) -> None:
    question = {"role": "user", "content": "What is the ferry called?"}
    bodies: dict[str, dict[str, object]] = {
        "/v1/chat/completions": {"model": "newton", "messages": [question]},
        "/v1/responses": {"model": "newton", "input": "What is the ferry called?"},
        "/v1/sessions/s1/turns": {"input": "What is the ferry called?"},
    }
    async with talking_within(tmp_path, dsn) as talk:
        talk.always(says(["I do not know."]))
        async with locked(dsn, "heart.entity_names"):  # which no message is written to
            answers = {path: await talk.post(path, body, **SOON) for path, body in bodies.items()}
        assert {answer.status_code for answer in answers.values()} == {200}
        assert all("I do not know." in answer.text for answer in answers.values())
        prompts = [json.dumps(one) for one in talk.behind.asked]
    assert len(prompts) == len(bodies) and all(UNSEARCHED in prompt for prompt in prompts)


class CountingEmbedder(HashEmbedder):
    """Counts the texts that were embedded since somebody was told of progress."""

    def __init__(self) -> None:
        self.unseen, self.most = 0, 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.unseen += len(texts)
        self.most = max(self.most, self.unseen)
        return await super().embed(texts)

    def see(self, _: int) -> None:
        self.unseen = 0


async def test_an_import_of_many_documents_is_seen_to_move(
    db: Database, agent: UUID, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a busy machine embeds a call of the model within the time for which a request may stand still
    texts, characters = 16, 60_000  # an eighth of what ships
    monkeypatch.setattr(vectors, "MAX_TEXTS_PER_CALL", texts)
    monkeypatch.setattr(importing, "BATCH_CHARACTERS", characters)
    paragraph = " ".join(f"The winch number {n} stands on the pier of the harbour." for n in range(200))
    lines = [document(f"# Winch {n}\n\n{paragraph}\n\n{n} {paragraph}", ref=f"d{n}") for n in range(8)]
    embedder = CountingEmbedder()
    made = importer(db, agent, outbox=EmbeddingOutbox(db, embedder, agent))
    report = await made.run(read_file(written(tmp_path, *lines)), progress=embedder.see)
    assert (report.new, report.rejections) == (8, [])
    assert report.embedded > 10 * texts
    assert embedder.most <= texts
    assert sum(len(str(line["content"])) for line in lines) > 2 * characters, "in more than one transaction"


async def test_a_request_waits_for_its_turn_until_its_deadline(api: Api, dsn: str) -> None:
    token = await api.token("ana")
    async with api.http(token) as http:
        await http.post("/v1/recall", json={"query": "x"})  # the token is known now
        async with locked(dsn, "memory.postings"):
            running = [asyncio.create_task(http.post("/v1/recall", json={"query": "x"})) for _ in range(10)]
            for _ in range(50):  # until each has a slot
                waited = await http.post("/v1/recall", json={"query": "x"}, headers=SOON)
                if waited.status_code == 429:
                    break
            else:
                pytest.fail("no request was refused")
            patient = asyncio.create_task(http.post("/v1/recall", json={"query": "x"}))
            await asyncio.sleep(0.1)
        assert waited.headers["retry-after"].isdigit()
        assert {answer.status_code for answer in [*await asyncio.gather(*running), await patient]} == {200}
