"""A client is never left without a byte: not while a conversation is compacted, and not by a model that hangs."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from newton.agent.compaction import service
from newton.agent.compaction.block_summarizer import FAILURE_THRESHOLD
from newton.db.pool import Database
from newton.ids import derive_agent_id
from newton.providers.upstreams import FAILURE_THRESHOLD as SHARED_THRESHOLD
from tests.endpoint import Endpoint, Respond, Wire, endpoint, fails, hangs, says
from tests.support import until
from tests.system.served import Api, served

SESSION = {"X-Newton-Session": "long"}
SUMMARY = json.dumps({"asked": ["Where the importer loses rows."], "state": ["The importer works."]})
# each turn of the conversation has more than the conversation may have
TIGHT: Mapping[str, object] = {
    "conversation_tokens": 1_200,
    "compaction": "threshold(recent=1)",
    "embedding_provider": "none",
}
TURNS = 60


@dataclass(slots=True)
class GatedModel:
    """A server whose answers wait for one gate and whose summaries go another way; it notes what it is asked."""

    summarize: Respond
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list[str])

    async def respond(self, wire: Wire) -> None:
        if is_summary(wire):
            self.asked.append("summary")
            return await self.summarize(wire)
        self.asked.append("answer" if "tools" in wire.body else "reading")
        await self.answers.wait()
        return await says(["All ", "is well."])(wire)


def is_summary(wire: Wire) -> bool:
    """Whether it is no answer: only those are asked with Newton's own words as the system's."""
    return wire.body["messages"][0]["role"] != "system"


@asynccontextmanager
async def compacted(
    model: GatedModel, db: Database, home: Path, **settings: object
) -> AsyncGenerator[tuple[Api, httpx2.AsyncClient, Endpoint]]:
    """An API whose session `long` has to be compacted before its next answer."""
    async with (
        endpoint(model.respond) as behind,
        served(
            db, home, openai_base_url=behind.url, openai_model="m", **cast("dict[str, Any]", {**TIGHT, **settings})
        ) as api,
        api.http() as http,
    ):
        said = [
            {"role": role, "content": f"Part {n} of it. " + f"The {role} says word {n} of many. " * 40}
            for n in range(6)
            for role in ("user", "assistant")
        ]
        assert (await http.post("/v1/sessions/long/messages", json={"messages": said})).status_code == 201
        yield api, http, behind
        if model.summarize is not hangs:
            await api.app.state.agents.default.compactions.finish(seconds=60)


def asks(text: str, *, stream: bool = False, path: str = "/v1/chat/completions") -> dict[str, Any]:
    body = {"input": text} if path.endswith("responses") else {"messages": [{"role": "user", "content": text}]}
    return {"method": "POST", "url": path, "json": {**body, "stream": stream}, "headers": SESSION}


async def entries(db: Database) -> list[str | None]:
    """The models of the summaries that are stored, None for a summary without one."""
    async with db.transaction(derive_agent_id("default")) as tx:
        return [row["model"] for row in await tx.fetch("select model from dialogue.compaction_entries")]


@pytest.fixture
def gate() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture(params=["slow", "fails", "hangs"])
def model(request: pytest.FixtureRequest, gate: asyncio.Event) -> GatedModel:
    async def slow(wire: Wire) -> None:
        await gate.wait()
        await says([SUMMARY])(wire)

    return GatedModel({"slow": slow, "fails": fails(500, retry_after="0"), "hangs": hangs}[request.param])


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_stream_begins_before_any_model_does_and_no_answer_waits_for_a_summary(
    model: GatedModel,
    gate: asyncio.Event,
    path: str,
    db: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # S003-12, S003-19: nothing is frozen
    monkeypatch.setattr(service, "TURN_SECONDS", 0.2)
    async with compacted(model, db, tmp_path) as (_, http, _):
        async with http.stream(**asks("And now?", stream=True, path=path)) as response:
            lines = response.aiter_lines()
            assert (response.status_code, (await anext(lines))[:8]) == (200, ": newton")
            assert not model.answers.is_set() and not gate.is_set(), "no model has said a word"
            model.answers.set()
            rest = [line async for line in lines]
        assert not gate.is_set(), "the answer is whole before the summary is"
        assert ": newton Compacting the conversation" in "\n".join(rest)
        text = "".join(pieces(rest))
        assert text == "All is well."
        gate.set()
        if model.summarize is not hangs:

            async def stored() -> bool:
                return bool(await entries(db))

            await until(stored)
            slow = "slow" if model.summarize.__name__ == "slow" else "extracted"
            assert (slow == "slow") == ("m" in await entries(db)), "the summary follows in the background"


def pieces(lines: list[str]) -> list[str]:
    """The pieces of a reply, in either protocol."""
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    texts = [event["delta"] for event in events if event.get("type") == "response.output_text.delta"]
    choices = [event["choices"][0]["delta"] for event in events if event.get("choices")]
    return [*texts, *(one["content"] for one in choices if one.get("content"))]


@pytest.fixture(params=["fails", "hangs"])
def broken(request: pytest.FixtureRequest) -> GatedModel:
    made = GatedModel({"fails": fails(500, retry_after="0"), "hangs": hangs}[request.param])
    made.answers.set()
    return made


@pytest.mark.slow
async def test_no_turn_is_lost_to_summaries_that_fail_or_hang(broken: GatedModel, db: Database, tmp_path: Path) -> None:
    # R8: the breaker of the summaries is not that of the answers
    async with compacted(broken, db, tmp_path) as (_, http, _):
        for number in range(TURNS):
            answer = await http.request(**asks(f"And number {number}? " + "Tell me all of it. " * 20))
            assert answer.status_code == 200, answer.text
            assert answer.json()["choices"][0]["message"]["content"] == "All is well."
    assert broken.asked.count("answer") == TURNS
    if broken.summarize is not hangs:
        assert broken.asked.count("summary") > SHARED_THRESHOLD > FAILURE_THRESHOLD


@pytest.mark.slow
async def test_an_answer_is_not_charged_with_what_summaries_cost(
    db: Database, tmp_path: Path, gate: asyncio.Event
) -> None:
    model = GatedModel(says([SUMMARY], usage=(10_000_000, 1)))
    model.answers.set()
    async with compacted(model, db, tmp_path, llm_tokens_per_day=1_000_000) as (_, http, _):
        for number in range(2):
            answer = await http.request(**asks(f"And number {number}?"))
            assert answer.status_code == 200, answer.text
    assert "summary" in model.asked


async def events_of(lines: AsyncIterator[str]) -> list[str]:
    return [line async for line in lines if line.startswith((":", "event:"))]


@pytest.mark.slow
async def test_a_turn_says_what_it_waits_for(db: Database, tmp_path: Path) -> None:
    # S003-12
    model = GatedModel(says([SUMMARY]))
    async with compacted(model, db, tmp_path) as (_, http, _):
        async with http.stream("POST", "/v1/sessions/long/turns", json={"input": "And now?"}) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == ": newton"
            heard: list[str] = []
            async for line in lines:
                heard.append(line)
                if "Waiting for the model m" in line:
                    model.answers.set()
        stages = [json.loads(line.removeprefix("data: ")).get("stage") for line in heard if line.startswith("data: ")]
        assert [stage for stage in stages if stage] == ["retrieving", "waiting"]
        assert "event: compaction" in heard[: heard.index("event: delta")]


async def test_a_stream_that_fails_before_it_begins_has_a_status(db: Database, tmp_path: Path) -> None:
    # R8
    async with served(db, tmp_path, embedding_provider="none") as api, api.http() as http:
        answer = await http.request(**asks("And now?", stream=True))
    begun = answer.headers["content-type"].startswith("text/event-stream")  # on a machine that is very busy
    assert begun or answer.status_code == 503
    assert "No model is set" in answer.text and '"finish_reason": "stop"' not in answer.text
