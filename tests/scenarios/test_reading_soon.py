"""When new lines are read by a model: after a few of them or a pause, at the close, and never at the cost of a turn."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from newton.agent.llm import usage
from newton.agent.llm.usage import UsageRecord
from newton.agent.reconciliation import reconciler
from newton.agent.reconciliation.readings import create_readings
from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.db.pool import Database
from newton.dialogue import session_close
from newton.heart import procedures
from newton.providers.chat import ChatReply
from newton.runtime.health.installation_checks import check_installation
from newton.runtime.wiring import AgentServices
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.reading import NOTHING, Reader, Sheet, asking, facts, read, told
from tests.support import teller, until


@pytest.fixture
async def served(mind: Mind) -> AsyncIterator[tuple[AgentServices, Reader]]:
    """An agent whose model is asked in the background, a moment after the last line."""
    model, readings = Reader(), create_readings(pause_seconds=0.05)
    assert mind.embedder
    yield replace(newton(mind, mind.embedder, model), readings=readings), model
    await readings.cancel()


async def test_a_session_of_six_lines_with_minutes_between_them_costs_one_call(
    mind: Mind, served: tuple[AgentServices, Reader]
) -> None:
    own, model = served
    for number in range(1, 7):
        await mind.hear(f"Shelf {number} holds apples.")
        await own.process_written("http")
        await own.readings.finish(seconds=10)
        mind.clock.advance(timedelta(minutes=3))
        await own.maintenance("job").learn(only_due=True)
    assert model.sheets == [], "more may follow"
    mind.clock.advance(timedelta(minutes=8))
    own.read_soon()

    async def is_read() -> bool:
        return len(model.sheets) == 1

    await until(is_read)
    await own.readings.finish(seconds=10)
    assert list_new(model.sheets[0]) == [1, 2, 3, 4, 5, 6]
    await mind.hear(*(f"Shelf {number} holds apples." for number in range(7, 15)))
    await own.process_written("http")
    await own.readings.finish(seconds=10)
    assert len(model.sheets) == 2, "as many as this are read without a pause"
    assert "(read)" in model.sheets[1].text and "Shelf 14" in model.sheets[1].text


async def test_above_its_share_of_the_tokens_an_open_session_waits_and_a_closed_one_does_not(mind: Mind) -> None:
    spent = ChatReply(text="", model="reader", input_tokens=900, output_tokens=100, estimated=False)
    await mind.hear(*(f"Shelf {number} holds apples." for number in range(6)))
    async with mind.scope.write() as (tx, ctx):
        for purpose in ("turn", reconciler.PURPOSE):
            await usage.record(tx, UsageRecord(spent, purpose), agent_id=ctx.agent_id, now=ctx.now)
    model = Reader()
    reading = MemoryReconciler(llm=asking(mind, model))
    mind.clock.advance(timedelta(minutes=1))
    assert (await reading.reconcile(9, only_due=True)).calls == 0
    session_id = await mind.session()
    async with mind.db.transaction(mind.agent_id) as tx:
        assert await session_close.close_session(tx, session_id=session_id, ctx=teller(mind.agent_id))
    assert (await reading.reconcile(9, only_due=True)).calls == 1


async def test_a_job_and_a_reading_after_a_turn_ask_the_model_once(mind: Mind) -> None:
    await told(mind, *(f"Shelf {number} holds apples." for number in range(6)))
    model = Reader([NOTHING])
    model.meanwhile = partial(asyncio.sleep, 0.2)
    reading = MemoryReconciler(llm=asking(mind, model))
    first, second = await asyncio.gather(reading.reconcile(9), reading.reconcile(9))
    assert (first.calls + second.calls, len(model.sheets)) == (1, 1)


async def test_a_restart_in_the_middle_reads_each_line_once(mind: Mind, dsn: str) -> None:
    await told(mind, *(f"Shelf {number} holds apples." for number in range(100)))
    model = Reader([NOTHING])

    async def stop() -> None:
        if len(model.sheets) == 2:
            raise ConnectionResetError("the process ends")

    model.meanwhile = stop
    with pytest.raises(ConnectionResetError):
        await read(mind, model=model)
    later, again = await Database.open(dsn, size=4), Reader()
    await read(replace(mind, db=later), model=again)
    await later.close()
    assert [number for sheet in (model.sheets[0], *again.sheets) for number in list_new(sheet)] == list(range(100))


def list_new(sheet: Sheet) -> list[int]:
    lines = [line for line in sheet.text.splitlines() if line[:1].isdigit() and "Shelf " in line]
    said = [line for line in lines if "(read)" not in line]
    return [int(line.split("Shelf ")[1].split()[0]) for line in said]


async def test_all_kinds_of_items_are_stored_with_the_authority_of_their_line(mind: Mind) -> None:
    await told(
        mind,
        "Hello, my name is Nora.",
        "We decided to take the oil heating out, because it leaks.",
        "The pump runs again: close the valve, press the red button, wait a minute.",
    )

    def answer(s: Sheet) -> list[dict[str, object]]:
        return [
            s.item("decision", "heating", text="The oil heating is taken out, because it leaks."),
            s.item("procedure", "pump", text="Start the pump: close the valve; press the red button; wait a minute"),
            s.item("episode", "pump", text="Nora got the pump running again, and decided on the heating."),
        ]

    model = Reader([answer])
    assert mind.embedder
    own = newton(mind, mind.embedder, model).maintenance("test")
    session_id = await mind.session()
    async with mind.db.transaction(mind.agent_id) as tx:
        assert await session_close.close_session(tx, session_id=session_id, ctx=teller(mind.agent_id))
    assert (await own.reconcile()).kept == 3
    assert "User: Nora" in model.sheets[0].text
    async with mind.db.transaction(mind.agent_id) as tx:
        stored = await procedures.list_versions(tx, agent_id=mind.agent_id)
        summary = await tx.fetchval("select summary from memory.memories where kind = 'episode'")
        assert await tx.fetchval("select count(*) from memory.memories where kind = 'decision'") == 0
    (skill,) = [one for one in stored if one.name == "start-the-pump"]
    assert (len(skill.steps), skill.is_proposed) == (3, False)
    assert "got the pump running again" in summary
    assert any("heating" in one for one in await facts(mind))


async def test_doctor_names_what_a_model_proposed_in_vain(mind: Mind) -> None:
    wrong = json.dumps({"items": [{"line": 99, "op": "add", "ids": [], "text": "x"}] * 35}, separators=(",", ":"))
    await mind.hear("Shelf one holds cider.")
    await read(mind, wrong)
    assert mind.embedder
    own = newton(mind, mind.embedder)
    (found,) = [one async for one in check_installation(own, verify=False) if "proposed" in one.detail]
    assert (found.state, "unknown line" in found.detail) == ("wrong", True)
    assert "larger" in (found.hint or "")
