"""The model's endpoint fails in seven ways: a daemon takes every write, gives no answer that is none, and is back soon
after the endpoint is."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest

from tests.conftest import database
from tests.endpoint import Respond, Wire, chunk, fails, hangs, says
from tests.system.scripted import Talk, talking

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1_800)]

AT_ONCE, TIMES = 4, 10
BACK_SECONDS = 300
DEADLINE = 1.0


async def drips(wire: Wire) -> None:
    await wire.begin_stream()
    while True:
        await wire.event(chunk({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}))
        await asyncio.sleep(0.2)


async def cuts(wire: Wire) -> None:
    await wire.begin_stream()
    wire.writer.write(b'data: {"choices": [{"delta": {"con')
    await wire.writer.drain()


async def talks_of_other_things(wire: Wire) -> None:
    await wire.begin_stream()
    await wire.event({"weather": "fine", "choices": [{"delta": {"content": {"deep": 1}}}]})


async def floods(wire: Wire) -> None:
    await wire.begin_stream()
    await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": "x" * 1_000_000}}]}))


WAYS: dict[str, Respond] = {
    "hang": hangs,
    "500": fails(500),
    "429": fails(429, Retry_After="30"),
    "drip": drips,
    "cut-json": cuts,
    "wrong-schema": talks_of_other_things,
    "1-mb": floods,
}


@pytest.fixture(scope="module")
async def talk(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    folder: Path = tmp_path_factory.mktemp("home")
    async with database(server, template) as dsn:
        (folder / "newton.toml").write_text(f'database_url = "{dsn}"\n', encoding="utf-8")
        async with talking(folder, dsn, NEWTON_LLM_TIMEOUT=str(DEADLINE)) as (made, process):
            process.begins(*WAYS)
            yield made


async def asked(talk: Talk, way: str, session: str, text: str) -> httpx2.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    return await talk.post("/v1/chat/completions", body, **{"X-Newton-Session": session, "X-Newton-Agent": way})


@pytest.mark.parametrize("way", WAYS)
async def test_an_outage_costs_no_write_and_ends_by_itself(
    talk: Talk, way: str, record_property: Callable[[str, object], None]
) -> None:
    # R8
    of = {"X-Newton-Agent": way}
    await talk.post("/v1/memories", {"content": "The ferry is called Artemis."}, **of)
    talk.always(WAYS[way])

    async def one(number: int) -> list[Any]:
        answers: list[Any] = []
        for time in range(TIMES):
            answers.append(await asked(talk, way, f"{number}", f"What is ferry {time} called ({way})?"))
            kept = await talk.post("/v1/memories", {"content": f"Cup {number} {time} is white."}, **of)
            assert kept.status_code == 201
        return answers

    answers = [answer for some in await asyncio.gather(*map(one, range(AT_ONCE))) for answer in some]
    firsts = AT_ONCE * TIMES
    assert {answer.status_code for answer in answers} <= {503, 429}, "none is an answer"
    assert all(answer.json()["error"]["message"] for answer in answers)
    tried = len(talk.behind.asked)
    assert tried <= 1.1 * firsts
    sql = "select 1 from dialogue.messages where content like $1"
    lines = await talk.fetch(sql, f"What is ferry % called ({way})?")
    assert len(lines) == firsts
    talk.always(says(["Back."]))
    began, back = monotonic(), False
    while not back and monotonic() - began < BACK_SECONDS:
        answer = (await asked(talk, way, "back", f"Are you there, {monotonic()}?")).json()
        back = "newton" in answer
        await asyncio.sleep(0.5)
    assert back
    record_property("requests", tried)
    record_property("back_after_s", round(monotonic() - began, 1))
