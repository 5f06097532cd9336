"""The same statements end the same, whichever interface tells them."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from newton.content.yaml_files import parse_trusted
from newton.ids import derive_agent_id
from tests.support import until
from tests.system.lines import fact
from tests.system.scripted import Talk, talking
from tests.system.test_mcp import speaking, told
from tests.system.typed import ok, typed

DEVELOPMENT = Path(__file__).parents[1] / "data" / "updates_dev.yaml"
PAIRS = {pair["id"]: pair for pair in parse_trusted(DEVELOPMENT.read_text(encoding="utf-8"))}
SAMPLE = (
    *("budget-cut", "sabine-moved-in", "knee-healed", "jira-linear"),
    *("coffee-price-corner", "carla-bergen", "ticket-state"),
    *("smoke-hab", "weekly-sync"),
    *("two-dogs", "home-two-ppl", "kayak-clubs"),
)
FIRST, SECOND = "2026-03-01T09:00:00Z", "2026-05-01T09:00:00Z"


class Ending(NamedTuple):
    """The texts of the current and of the superseded facts, and the pairs that are shown as a conflict."""

    current: frozenset[str]
    superseded: frozenset[str]
    contested: frozenset[tuple[str, str]]


@pytest.fixture(scope="module")
async def talk(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking(home, behind, NEWTON_EMBEDDING_PROVIDER="local") as (made, _):
        yield made


def told_texts(names: Sequence[str]) -> tuple[list[str], list[str]]:
    return [PAIRS[name]["older"] for name in names], [PAIRS[name]["newer"] for name in names]


async def ending(talk: Talk, agent: str, *, facts: int) -> Ending:
    """Return how it ends for the agent, once this number of facts is compared."""
    agent_id = derive_agent_id(agent)

    async def compared() -> bool:
        counted = "select count(*) from heart.facts where agent_id = $1 and is_compared"
        return (await talk.fetch(counted, agent_id))[0][0] == facts

    await until(compared)
    rows = await talk.fetch(
        "select full_text, state from memory.memories where agent_id = $1 and kind = 'fact'", agent_id
    )
    headers = {"Authorization": f"Bearer {talk.token}", "X-Newton-Agent": agent}
    async with httpx2.AsyncClient(base_url=talk.url, headers=headers, timeout=60) as http:
        found = (await http.get("/v1/conflicts")).json()["items"]
    superseded = {row["full_text"] for row in rows if row["state"] == "SUPERSEDED"}
    pairs = {(one["older"]["text"], one["newer"]["text"]) for one in found}
    return Ending(frozenset(row["full_text"] for row in rows) - superseded, frozenset(superseded), frozenset(pairs))


async def tell_http(talk: Talk, agent: str, names: Sequence[str]) -> Ending:
    for texts, at in zip(told_texts(names), (FIRST, SECOND), strict=True):
        for text in texts:
            reply = await talk.post("/v1/memories", {"content": text, "at": at}, **{"X-Newton-Agent": agent})
            assert reply.status_code == 201, reply.text
    return await ending(talk, agent, facts=2 * len(names))


async def tell_mcp(talk: Talk, agent: str, names: Sequence[str]) -> Ending:
    async with speaking(talk.url, talk.token, **{"X-Newton-Agent": agent}) as client:
        for text in (text for texts in told_texts(names) for text in texts):
            await told(client, "remember", content=text, source="own")
    return await ending(talk, agent, facts=2 * len(names))


async def tell_import(talk: Talk, home: Path, agent: str, lines: Sequence[dict[str, object]]) -> Ending:
    path = home / f"{agent}.ndjson"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    ok(await asyncio.to_thread(typed, home, "import", str(path), "--agent", agent, NEWTON_EMBEDDING_PROVIDER="local"))
    return await ending(talk, agent, facts=len(lines))


def import_lines(names: Sequence[str]) -> list[dict[str, object]]:
    dated = zip(told_texts(names), (FIRST, SECOND), strict=True)
    return [fact(text, at=at, ref=f"{at}{n}") for texts, at in dated for n, text in enumerate(texts)]


async def tell_cli(talk: Talk, home: Path, agent: str) -> Ending:
    for texts, at in zip(told_texts(SAMPLE), (FIRST, SECOND), strict=True):
        for text in texts:
            words = ("remember", text, "--at", at, "--agent", agent)
            ok(await asyncio.to_thread(typed, home, *words, NEWTON_EMBEDDING_PROVIDER="local"))
    return await ending(talk, agent, facts=2 * len(SAMPLE))


async def tell_chat(talk: Talk, agent: str) -> Ending:
    for session, texts in zip(("first", "second"), told_texts(SAMPLE), strict=True):
        async with talk.client(**{"X-Newton-Session": session, "X-Newton-Agent": agent}) as client:
            for text in texts:
                await client.chat.completions.create(model="newton", messages=[{"role": "user", "content": text}])
        headers = {"X-Newton-Agent": agent}
        closed = await talk.post(f"/v1/sessions/{session}/close", {}, **headers)
        assert closed.status_code == 200, closed.text
        assert (await talk.post("/v1/jobs/extract/run", {}, **headers)).status_code == 202
        await ending(talk, agent, facts=len(SAMPLE) * (1 if session == "first" else 2))
    return await ending(talk, agent, facts=2 * len(SAMPLE))


@pytest.mark.slow
async def test_the_same_statements_end_the_same_through_every_interface(talk: Talk, home: Path) -> None:
    # S002-16, S002-17
    for agent in ("by-http", "by-mcp", "by-cli", "by-chat", "by-file", "by-file-reversed"):
        await talk.post("/v1/agents", {"name": agent})
    expected = await tell_http(talk, "by-http", SAMPLE)
    lines = import_lines(SAMPLE)
    found = {
        "mcp": await tell_mcp(talk, "by-mcp", SAMPLE),
        "cli": await tell_cli(talk, home, "by-cli"),
        "chat": await tell_chat(talk, "by-chat"),
        "import": await tell_import(talk, home, "by-file", lines),
        "import, latest first": await tell_import(talk, home, "by-file-reversed", lines[::-1]),
    }
    differing = {name: end for name, end in found.items() if end != expected}
    assert not differing, (differing, expected)
    olders, newers = told_texts(SAMPLE)
    settled = expected.superseded | {older for older, _ in expected.contested}
    assert expected.superseded <= set(olders) and set(newers) <= expected.current
    assert len(settled & set(olders[:9])) >= 7
    assert not settled & set(olders[9:])
