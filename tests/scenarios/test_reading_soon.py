"""When new lines are read by a model: after a few or a pause, at the close, and again where it failed."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import pytest

from newton.agent.background_runs import create_readings
from newton.agent.llm import usage
from newton.agent.llm.usage import UsageRecord
from newton.agent.reconciliation import reconciler
from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import ProviderError, RefusedRequestError
from newton.heart import procedures
from newton.providers.chat import ChatReply
from newton.runtime.health.installation_checks import check_installation
from newton.runtime.wiring import AgentServices
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.reading import NOTHING, Reader, Sheet, asking, facts, read, told
from tests.support import until


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
    assert await mind.close(session_id)
    assert (await reading.reconcile(9, only_due=True)).calls == 1


async def test_a_job_and_a_reading_after_a_turn_ask_the_model_once(mind: Mind) -> None:
    await told(mind, *(f"Shelf {number} holds apples." for number in range(6)))
    model = Reader([NOTHING])
    model.meanwhile = partial(asyncio.sleep, 0.2)
    reading = MemoryReconciler(llm=asking(mind, model))
    first, second = await asyncio.gather(reading.reconcile(9), reading.reconcile(9))
    assert (first.calls + second.calls, len(model.sheets)) == (1, 1)


async def test_a_restart_in_the_middle_reads_each_line_once(mind: Mind, dsn: str) -> None:
    await mind.hear(*(f"Shelf {number} holds apples." for number in range(100)))
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
    assert await mind.close(session_id)
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


@dataclass
class Failing(Reader):
    """A model that fails for new lines with a word, the first few times or always."""

    word: str = ""
    error: ProviderError = field(default_factory=lambda: RefusedRequestError("The filter refuses it.", hint="None."))
    times: int = 1_000
    failed: int = 0

    def __post_init__(self) -> None:
        self.meanwhile = self.fail

    async def fail(self) -> None:
        if self.word in new_lines(self.sheets[-1]) and self.failed < self.times:
            self.failed += 1
            raise self.error


def new_lines(sheet: Sheet) -> str:
    return sheet.text.split("<lines>")[1]


async def run(mind: Mind, model: Reader) -> None:
    """Read what is due; the errors of a job are logged."""
    with suppress(ProviderError):
        await read(mind, model=model)


@pytest.mark.usefixtures("minilm")
@pytest.mark.slow
async def test_sessions_that_the_model_refuses_hold_up_no_other_and_are_given_up(mind: Mind) -> None:
    for number in range(3):
        await told(mind, f"My cousin Bo has the forbidden shelf {number}.", session=f"refused {number}")
        mind.clock.advance(timedelta(minutes=1))
    await told(mind, "My sister Anna lives in Linz.", session="good")
    model = Failing(word="forbidden")
    for _ in range(3):
        await run(mind, model)
    assert any("Anna lives" in new_lines(sheet) for sheet in model.sheets)
    for number in range(8):
        mind.clock.advance(timedelta(days=1))
        await told(mind, f"Today I baked loaf number {number}.", session=f"later {number}")
        await run(mind, model)
        await run(mind, model)
    asked = len(model.sheets)
    await run(mind, model)
    assert len(model.sheets) == asked, "nothing is due"
    assert model.failed < 3 * 10, "a few times for each"


@pytest.mark.usefixtures("minilm")
async def test_old_lines_of_an_import_are_asked_about_again(mind: Mind) -> None:
    await told(mind, "My sister Anna lives in Linz.", session="first")
    mind.clock.advance(timedelta(minutes=1))
    said = Message(role="user", content="My uncle Karl keeps bees.", said_at=mind.clock.now() - timedelta(days=400))
    session_id = await mind.session("imported")
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(tx, [said], session_id=session_id, ctx=mind.scope.write_context("user"))
    model = Failing(word="Karl", error=ProviderError("It does not answer.", hint="Wait."), times=1)
    await run(mind, model)
    await run(mind, model)
    assert sum("Karl" in new_lines(sheet) for sheet in model.sheets) == 2


@pytest.mark.usefixtures("minilm")
@pytest.mark.slow
async def test_of_an_answer_that_is_cut_nothing_is_lost_and_the_rest_is_read_again(mind: Mind) -> None:
    names = ["Ada", "Bea", "Cleo", "Dora", "Edda", "Fee"]
    kinds = ["a cat", "a boat", "an oboe", "a loom", "a kiln", "a drum"]
    await told(
        mind, *(f"My cousin {name} bought {kind}, she loves it." for name, kind in zip(names, kinds, strict=True))
    )
    first = await facts(mind)

    def answer(sheet: Sheet) -> list[dict[str, object]]:
        pairs = [pair for pair in zip(names, kinds, strict=True) if f" {pair[0]} " in new_lines(sheet)]
        items = [
            sheet.item("update", name, name, text=clear(name, kind)) for name, kind in pairs if is_new(sheet, name)
        ]
        return [{**item, "subject": "very " * 200} for item in items]  # a model that wastes its tokens

    model = Reader([answer] * 9)
    await run(mind, model)
    now = await facts(mind)
    assert all(any(f"{name} " in one for one in now) for name in names) and len(now) >= len(first)
    asked = [sum(is_new(sheet, name) for name in names) for sheet in model.sheets]
    assert asked[0] == len(names) and len(asked) > 1 and sorted(asked, reverse=True) == asked, asked
    assert {clear(name, kind) for name, kind in zip(names, kinds, strict=True)} <= {*now}


def clear(name: str, kind: str) -> str:
    return f"Nora's cousin {name} bought {kind} and loves it."


def is_new(sheet: Sheet, word: str) -> bool:
    return re.search(rf"^\d+ (?!\(read\)).*\b{word}\b", new_lines(sheet), re.MULTILINE) is not None


@pytest.mark.usefixtures("minilm")
@pytest.mark.slow
async def test_a_branch_of_a_long_session_is_read_from_its_first_message(mind: Mind) -> None:
    parent_id = await mind.hear(*(f"Shelf {number} is empty." for number in range(100)), session="long")
    await mind.branch("branch", of=parent_id)
    await told(mind, "My sister Anna lives in Graz.", session="branch")
    assert "My sister Anna lives in Graz." in await facts(mind), "it is known in the next turn"
    model = Reader()
    await run(mind, model)
    assert any("Anna lives" in new_lines(sheet) for sheet in model.sheets)


@pytest.mark.usefixtures("minilm")
async def test_a_told_episode_that_the_model_refuses_holds_up_no_other(mind: Mind) -> None:
    for text in ("We saw the forbidden lake.", "We moved to Bergen in May."):
        await mind.verbs.remember_episode(text, title="The summer", occurred_at=mind.clock.now())
        mind.clock.advance(timedelta(minutes=1))
    model = Failing(word="forbidden")
    reconciler = MemoryReconciler(llm=asking(mind, model))
    results = [await reconciler.read_told_episodes(8, ended_before=mind.clock.now()) for _ in range(2)]
    assert ["Bergen" in new_lines(sheet) for sheet in model.sheets] == [False, True, False]
    assert results[1].calls == 0
