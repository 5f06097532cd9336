"""Time as a value: dates that are meant, periods that are asked for, and what changed in a period, without a model."""

from datetime import datetime, timedelta

import pytest

from newton.agent.loop.fallback import quote_memories
from newton.agent.maintenance.statement_extraction import extract_statements
from newton.agent.services.memories import FactDraft
from newton.cognition.bundles.bundle import Bundle
from newton.dialogue import session_close, sessions
from newton.dialogue.artifacts import Artifact, ArtifactWriter
from newton.dialogue.messages import Message
from newton.heart.facts import fact_store
from newton.providers import token_counter
from newton.runtime.tools.tool_registry import run_tool
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_replay import hindsight
from tests.support import NOON

MONDAY = NOON - timedelta(days=5)  # noon is of Saturday, 21 November 2026


async def talk(mind: Mind, *said: tuple[datetime, str], session: str = "s1") -> None:
    """Say lines at their times in one session, end it, and learn from it."""
    async with mind.scope.write("user") as (tx, ctx):
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=session, now=ctx.now)
        lines = [Message(role="user", content=text, said_at=at) for at, text in said]
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
    await extract_statements(mind.db, mind.scope.write_context(), limit=10)


async def adaptive(mind: Mind, text: str) -> Bundle:
    return await mind.context(text, adaptive_budget=True)


async def test_a_relative_date_is_shown_on_every_interface_and_stored_as_it_was_said(mind: Mind) -> None:
    # S001-12, S002-4: the short forms say which day is meant
    mind.clock.advance(MONDAY - mind.clock.now())
    await mind.know("My exam is next Friday.", "I have lived in Graz since last spring.", "The flat was built in 1990.")
    mind.clock.advance(NOON - mind.clock.now())
    bundle = await mind.context("When is my exam, and where do I live?")
    assert "16 Nov: My exam is next Friday (Fri 20 Nov 2026)." in bundle.text
    assert "I have lived in Graz since last spring (Mar - May 2026)." in bundle.text
    assert bundle.tokens == token_counter.count(bundle.text)
    assert (await hindsight(mind).replay("latest")).identical
    found = await run_tool(newton(mind, None), "recall", {"query": "exam"})
    assert "next Friday (Fri 20 Nov 2026)" in str(found)
    assert "My exam is next Friday." in await mind.facts(), "what was said stays word for word"
    await mind.know("My exam is next Friday.")
    assert len(await mind.facts()) == 3


async def test_tomorrow_is_of_the_day_of_the_speaker(mind: Mind) -> None:
    # S001-12
    late = datetime.fromisoformat("2026-11-18T00:30:00+02:00")  # the evening of the 17th in UTC
    await talk(mind, (late, "My flight to Rome is tomorrow."))
    assert "tomorrow (Thu 19 Nov 2026)" in (await mind.context("When is my flight to Rome?")).text
    starts = await mind.fetch("select starts_at from memory.mentioned_times join memory.memories using (memory_id)")
    assert {row["starts_at"] for row in starts} == {datetime.fromisoformat("2026-11-19T00:00:00+02:00")}


async def test_what_is_told_holds_from_its_own_line_on(mind: Mind) -> None:
    # S002-16
    said = [(MONDAY, "My sister Mara lives in Lisbon."), (NOON - timedelta(days=1), "I work as a baker in Graz.")]
    await talk(mind, *said)
    rows = await mind.fetch("select valid_from from heart.facts order by valid_from")
    assert [row["valid_from"] for row in rows] == [at for at, _ in said]


async def test_a_period_asked_for_leaves_out_what_is_of_another(mind: Mind) -> None:
    # S001-12
    for days, text in (
        (30, "The roof was repaired on 12 October."),
        (27, "I bought a boat."),
        (26, "I will paint the shed in December."),
        (5, "The fence was painted in November."),
        (4, "I met Olga yesterday."),
    ):
        mind.clock.advance(NOON - timedelta(days=days) - mind.clock.now())
        await (mind.hear(text) if days in (26, 27) else mind.know(text))
    mind.clock.advance(NOON - mind.clock.now())
    asked = (await adaptive(mind, "What happened in October?")).text
    shown = [word for word in ("roof", "boat", "shed", "fence", "Olga") if word in asked]
    assert shown == ["roof", "boat"]


CHANGED = [
    "What changed since Monday?",
    "Was hat sich seit Montag geändert?",
    "¿Qué ha cambiado desde el lunes?",
    "Qu'est-ce qui a changé depuis lundi ?",
    "Cosa è cambiato da lunedì?",
    "O que mudou desde segunda-feira?",
    "Wat is er sinds maandag veranderd?",
    "Что изменилось с понедельника?",
    "周一以来有什么变化？",
    "月曜日から何が変わりましたか？",
]


@pytest.fixture
async def changed(mind: Mind) -> Mind:
    """Somebody of whom three facts changed since Monday, and others did not."""
    mind.clock.advance(NOON - timedelta(days=20) - mind.clock.now())
    await mind.know("I live in Graz.", "My dentist is Dr Claes.", "Bruno is my dog.")
    club = FactDraft(content="I train at the boat club.", until=NOON - timedelta(days=2))
    await mind.verbs.remember(club)
    mind.clock.advance(NOON - timedelta(days=1) - mind.clock.now())
    await mind.know("I live in Linz.", "Olga plays the cello.")
    rows = await mind.fetch("select memory_id, full_text from memory.memories where kind = 'fact'")
    ids = {row["full_text"]: row["memory_id"] for row in rows}
    async with mind.scope.write("user") as (tx, ctx):
        await fact_store.supersede(tx, ids["I live in Graz."], by_fact=ids["I live in Linz."], ctx=ctx)
    mind.clock.advance(NOON - mind.clock.now())
    await talk(mind, (NOON - timedelta(days=9), "Shall we talk about the dog?"))
    return mind


@pytest.mark.parametrize("question", CHANGED)
async def test_what_changed_since_a_day_is_listed_with_its_count(changed: Mind, question: str) -> None:
    # S002-16: replaced, ended and new facts by validity and links, and nothing else
    bundle = await adaptive(changed, question)
    assert "2 new, 1 changed, 1 ended; 4 shown." in bundle.text
    assert "New:\n- 20 Nov: I live in Linz.\n- 20 Nov: Olga plays the cello.\n" in bundle.text
    assert "Changed:\n- changed since (I live in Linz.), 1 Nov: I live in Graz." in bundle.text
    assert "Ended:\n- until 19 Nov: I train at the boat club." in bundle.text
    assert "Claes" not in bundle.text and "dog" not in bundle.text
    assert "requested time" not in bundle.text and bundle.tokens == token_counter.count(bundle.text)
    assert "- until 19 Nov: I train at the boat club." in quote_memories(bundle)
    assert (await hindsight(changed).replay("latest")).identical


async def test_nothing_that_changed_is_said(changed: Mind) -> None:
    # S002-16
    bundle = await adaptive(changed, "What changed since today?")
    assert "0 new, 0 changed, 0 ended; 0 shown." in bundle.text and "Linz" not in bundle.text
    topic = await adaptive(changed, "What changed with my dentist since Monday?")
    assert "Claes" in topic.text, "with a topic it is a question like others"


async def summarize(mind: Mind, text: str, *, session: str) -> None:
    """Store a summary of a session so far, which continues the one before it."""
    found = "select m.memory_id from memory.memories m join dialogue.sessions s on s.session_id = m.thread_id"
    found += " where s.ref = $1 and m.kind = $2"
    latest = await mind.fetch(f"{found} order by m.memory_id desc limit 1", session, "artifact")
    sources = tuple(row["memory_id"] for row in latest or await mind.fetch(found, session, "exchange"))
    async with mind.scope.write("user") as (tx, ctx):
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=session, now=ctx.now)
        own = {
            "type": "summary",
            "max_tokens": 100,
            "trust": "user",
            "key": (text,),
            "positions": (0, 0),
            "sources": sources,
        }
        told = Artifact(prefix="[2026-11-01] this session so far, in short: ", text=text, occurred_at=ctx.now, **own)  # pyright: ignore[reportArgumentType]  # named fields
        await ArtifactWriter(session_id=session_id, ctx=ctx).store(tx, [told])
    await mind.settle()


@pytest.mark.parametrize("is_wrong", [False, True])
async def test_an_episode_and_a_summary_that_repeat_what_changed_say_so(mind: Mind, *, is_wrong: bool) -> None:
    # S002-16; planted and seen to fail: episodes and summaries without what has changed
    mind.clock.advance(timedelta(days=-20))
    lines = ("I live in Graz.", "My sister Mara plays the cello.")
    await talk(mind, *((mind.clock.now(), text) for text in lines), session="old")
    await talk(mind, (mind.clock.now(), "My brother Tom lives in Graz too."), session="other")
    await summarize(mind, "User: I live in Graz. User: My sister Mara plays the cello.", session="old")
    await summarize(mind, "User: My sister Mara plays the cello.", session="old")
    await summarize(mind, "User: I still live in Graz.", session="old")
    before = mind.clock.now() + timedelta(hours=1)
    mind.clock.advance(timedelta(days=10))
    await mind.know("I live in Linz.")
    rows = await mind.fetch("select memory_id, full_text from memory.memories where kind = 'fact'")
    ids = {row["full_text"]: row["memory_id"] for row in rows}
    async with mind.scope.write("user") as (tx, ctx):
        if is_wrong:
            await fact_store.retract(tx, ids["I live in Graz."], ctx=ctx)
        else:
            await fact_store.supersede(tx, ids["I live in Graz."], by_fact=ids["I live in Linz."], ctx=ctx)
    asked, session_id = "Do I live in Graz, and what does my sister Mara play?", await mind.session("old")
    bundle = await mind.context(asked, session_id=session_id, fill=True)
    told = [line for line in bundle.text.splitlines() if "Graz" in line and "Tom" not in line]
    assert len(told) >= 3 and all("changed since" in line for line in told), bundle.text
    assert any("this session so far" in line for line in told) and any("Mara" in line for line in told)
    assert all("changed since" not in line for line in bundle.text.splitlines() if "Graz" not in line or "Tom" in line)
    assert bundle.tokens == token_counter.count(bundle.text)
    assert (await hindsight(mind).replay("latest")).identical
    then = await mind.context(asked, session_id=session_id, fill=True, as_of=before)
    assert "Graz" in then.text and "changed since" not in then.text
    found = await run_tool(newton(mind, None), "recall", {"query": "live in Graz", "kinds": ["episode"]})
    assert "changed since (I live in Graz.)" in str(found) and "changed since (My brother" not in str(found)
