"""An input that asks for a time is given what happened then, whatever its words, and what was said of it later."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from newton.agent.loop.fallback import NOTHING_FOUND
from newton.agent.loop.turn_types import TurnInput
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import InputError
from newton.heart import episodes
from newton.heart.episodes import NewEpisode
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import validate_event
from newton.providers.fakes import ScriptedChat
from tests.db.deciding import choice, recorded
from tests.scenarios.conftest import Mind
from tests.scenarios.test_replay import hindsight
from tests.scenarios.test_sources import locked
from tests.scenarios.test_turn import take
from tests.support import NOON, teller

DECIDED = "What did we decide last week?"
HAPPENED = "What happened yesterday?"
SUBJECTS = ("boat", "cellar", "garden", "office", "server", "timetable", "holiday", "bicycle", "library", "kitchen")
DAYS = range(1, 44, 2)  # so long ago; it is a Saturday, so last week is from 12 to 6 days ago
WEEK = [7, 9, 11]


async def say(mind: Mind, at: datetime, *said: str) -> None:
    ctx = teller(mind.agent_id, now=at)
    lines = [Message(role="user", name="Ana", content=words, said_at=at) for words in said]
    async with mind.db.transaction(mind.agent_id) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=f"{at:%Y-%m-%d}", now=at)
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)


async def live(mind: Mind, day: int) -> None:
    """A decision, an episode and two lines; on some days somebody asks what will be asked later."""
    at, subject = NOON - timedelta(days=day), SUBJECTS[day % 10]
    ctx, told = teller(mind.agent_id, now=at), f"The {subject} was painted, try {day}."
    async with mind.db.transaction(mind.agent_id) as tx:
        await recorded(tx, choice(f"Paint the {subject} green, try {day}", at=at, ref=f"d{day}"), ctx=ctx)
        lived = NewEpisode(ref=f"e{day}", title=f"The {subject}", content=told, started_at=at, ended_at=at)
        await episodes.add_episodes(tx, [lived], ctx=ctx)
    await say(mind, at, DECIDED if day % 3 == 0 else f"What happened yesterday to the {subject}, what did we decide?")


@pytest.fixture
async def lived(mind: Mind) -> Mind:
    """Somebody with six weeks of memories."""
    for day in reversed(DAYS):
        await live(mind, day)
    await mind.settle()
    return mind


def ages(bundle: Bundle, layer: str) -> list[int]:
    """How many days ago that was which stands in a layer, best first."""
    return [(NOON - item.scored.found.occurred_at).days for item in bundle.items if item.layer == layer]


def texts(items: Sequence[ScoredCandidate]) -> str:
    return "\n".join(item.text for item in items)


async def test_what_is_of_the_time_asked_for_comes_first_and_says_why(lived: Mind) -> None:
    # S001-12, S002-9: time expressions are a signal; S002-12: of each layer
    for profile in ("evidence", "newton", "coding", "support", "research"):
        decided = ages(await lived.context(DECIDED, profile=profile, frame="question"), "decisions")
        assert sorted(decided[:3]) == WEEK, profile
        happened = ages(await lived.context(HAPPENED, profile=profile, frame="question"), "episodes")
        assert (happened[:2], happened.count(1)) == ([1, 1], 2), profile
    account = await hindsight(lived).explain("latest")
    assert {one.note for one in account.candidates if one.number in (1, 2)} == {"in the requested time: yesterday"}
    assert account.candidates[-1].note is None
    assert (await hindsight(lived).replay("latest")).identical


async def test_a_turn_loads_what_is_of_the_time_and_a_subject_still_counts(lived: Mind) -> None:
    # S002-14: a context that stands is made for the times that it was made for
    turns, session_id = lived.turns(ScriptedChat("a", "b", "c", "d")), await lived.session("now")

    async def ask(text: str) -> Bundle:
        return (await take(turns, TurnInput(session_id=session_id, text=text, frame="question")))[1].bundle

    assert set(ages(await ask(DECIDED), "decisions")) == set(WEEK)
    assert set(ages(await ask("And what was it yesterday?"), "decisions")) == {1}
    about = await ask("Which green did we decide to paint the bicycle last week, the office or the bicycle?")
    assert ages(about, "decisions")[0] == 7, "what is of the time, and of the subject"
    assert ages(await ask("How are you today?"), "decisions") == ages(about, "decisions"), "nobody asks for a time"


async def test_what_a_memory_speaks_of_is_resolved_against_its_own_time(mind: Mind) -> None:
    # S001-12
    may = datetime.fromisoformat("2023-05-08T10:00:00+00:00")
    await say(mind, may, "I went to the doctor yesterday.", "We moved in March, last year was quiet.", "A fine day.")
    for day in range(40):
        await say(mind, may + timedelta(days=day + 1), f"What happened on number {day}?", "It was May.")
    await mind.settle()
    seventh = await mind.context("What happened on 7 May 2023?")
    assert "I went to the doctor yesterday." in texts(seventh.items[:1])
    assert "Ana: I went to the doctor yesterday.\n" in seventh.text, "shown word for word"
    assert "We moved in March" in texts((await mind.context("What did we do in March 2023?")).items[:1])
    assert "We moved in March" in texts((await mind.context("What was it like in 2022?")).items[:1])
    rows = await mind.fetch("select memory_id from memory.mentioned_times order by starts_at")
    assert len(rows) == 3
    await mind.forget(rows[0][0], derived=True)
    left = await mind.fetchval("select count(*) from memory.mentioned_times")
    assert left == 1, "with the memory, its times are gone"


async def test_events_of_the_time_come_in_and_what_is_late_is_named(lived: Mind, dsn: str) -> None:
    # S001-11, S001-16
    at = NOON - timedelta(days=1)
    failed = validate_event("error", at, {"message": "the pump is blocked"})
    async with lived.db.transaction(lived.agent_id) as tx:
        told = NewEvent(ref="v1", event=failed)
        await event_store.record_events(tx, [told], ctx=teller(lived.agent_id, now=at, trust="operator"))
    assert "the pump is blocked" in (await lived.context("What broke yesterday?", frame="question")).text
    then = await lived.context(HAPPENED, as_of=NOON - timedelta(days=20), frame="question")
    assert ages(then, "episodes")[:2] == [21, 21], "as of a day its own yesterday is meant"
    assert min(ages(then, "decisions")) == 21
    async with locked(dsn, "memory.mentioned_times"):
        contexts = replace(lived.contexts, timeout_seconds=1.0)
        bundle = await contexts.build(ContextBuildRequest(agent_id=lived.agent_id, input=DECIDED, tokens=2_000))
    assert "times" in bundle.missing


async def test_nothing_of_the_time_is_told_and_not_answered_from_others(mind: Mind) -> None:
    # S001-12
    turns, asked = mind.turns(None), "What did we decide in 1999?"
    async with mind.db.transaction(mind.agent_id) as tx:
        await recorded(tx, choice("Decide on Redis", at=NOON - timedelta(days=2), ref="d"), ctx=teller(mind.agent_id))
    await say(mind, NOON - timedelta(days=3), "We decided to paint the boat.")
    for repetition in range(3):
        said = TurnInput(session_id=await mind.session(f"now {repetition}"), text=asked)
        _, answer = await take(turns, said)
        assert answer.text == "Memory has nothing from that time (in 1999)."
        assert answer.bundle.as_json()["times"] == {"asked": ["in 1999"], "blank": True}
        assert "Memory has nothing from the requested time (in 1999)." in answer.bundle.text
        await mind.settle()
        mind.clock.advance(timedelta(minutes=5))
    assert (await hindsight(mind).replay("latest")).identical
    about = TurnInput(session_id=await mind.session("about"), text="Who did we decide should paint the boat in 1999?")
    _, answer = await take(turns, about)
    assert "From other times:\n- " in answer.text, "it has a subject"


async def test_what_is_quoted_follows_the_times_of_the_context(mind: Mind) -> None:
    # S001-12
    async with mind.db.transaction(mind.agent_id) as tx:
        for day, what in ((9, "Paint the hull"), (8, "Buy the mast"), (30, "Sell it all")):
            await recorded(tx, choice(what, at=NOON - timedelta(days=day), ref=what), ctx=teller(mind.agent_id))
    await mind.settle()
    _, answer = await take(mind.turns(None), TurnInput(session_id=await mind.session("now"), text=DECIDED))
    assert "Paint the hull" in answer.text and "Buy the mast" in answer.text and "Sell it all" not in answer.text
    week = ContextFilters(
        since=NOON - timedelta(days=12), until=NOON - timedelta(days=5), kinds=frozenset({"decision"})
    )
    left = await mind.context("And what was it?", filters=week)
    assert sorted(ages(left, "decisions")) == [8, 9], "the words and the filters ask for the same"
    with pytest.raises(InputError, match="is empty"):
        await mind.context("x", filters=replace(week, since=NOON))


async def test_an_account_of_questions_is_not_made_and_the_question_is_not_quoted(mind: Mind) -> None:
    # S002-9
    turns, session_id = mind.turns(None), await mind.session("asking")
    for text in ("Where are the keys?", "Who has the keys?", "Where is Ana?", "Is it late?", "Where are the keys?"):
        await take(turns, TurnInput(session_id=session_id, text=text))
        mind.clock.advance(timedelta(minutes=1))
    assert await mind.close(session_id) == 0
    asked = "User talked, 10 lines. They came back to this: Who has the keys? It ended with User: Where are the keys?"
    lived = NewEpisode(ref="e", title="Where are the keys?", content=asked, started_at=NOON, ended_at=NOON)
    async with mind.db.transaction(mind.agent_id) as tx:
        await episodes.add_episodes(tx, [lived], ctx=teller(mind.agent_id))
    await mind.settle()
    said = TurnInput(session_id=await mind.session("later"), text="Where are the keys?")
    assert (await take(turns, said))[0] == NOTHING_FOUND


async def test_a_day_without_a_year_that_is_still_to_come_is_found_when_it_comes(mind: Mind) -> None:
    # S001-12; it is 21 November
    await say(mind, NOON - timedelta(days=20), "The dentist sees me on 22 November.")
    await say(mind, NOON - timedelta(days=1), "I bring the cake on Sunday.")
    await mind.settle()
    bundle = await mind.context("What do I have planned for tomorrow?", frame="question")
    assert "dentist" in bundle.text and "cake" in bundle.text and not bundle.empty_time_ranges


NAMES_A_DAY = (
    "Remind me on Friday to call Ana.",
    "The release is on Monday, write a note.",
    "Can you book us a table for Saturday evening?",
    "I met Priya yesterday and she says hi.",
    "Could you please draft an agenda for tomorrow's meeting",
    "my flight leaves at nine on Thursday",
    "We moved the launch to next Monday, please update the plan.",
    "Put milk on the list for tomorrow",
    "Should I take an umbrella on Sunday?",
    "I've got the dentist next Wednesday, ugh. What helps against being nervous?",
    "Shall we go hiking on Saturday?",
    "Write an invitation for the party on 12 June, friendly and short.",
    "Happy to start on Tuesday!",
    "What should I wear to the wedding on Saturday?",
    "How do I tell my boss that I can't come tomorrow?",
)
ASKS_FOR_A_TIME = (
    "What did I do last Friday?",
    "who did I meet yesterday",
    "Did anything break in March?",
    "Show me what we decided last week.",
    "list the meetings of last Tuesday",
    "Tell me about last weekend.",
    "What's planned for tomorrow?",
    "Do I have anything on Thursday?",
    "Summarize yesterday for me, please.",
    "Can you tell me what happened on Monday?",
    "when was I at the dentist in April?",
    "Hi! Was there any message from Ana on Sunday?",
    "What have we talked about this week?",
    "Remind me what I promised Priya last month.",
    "Thanks. And what was the plan for Saturday?",
)


async def test_only_an_input_that_asks_for_a_time_is_told_that_memory_has_nothing_from_it(mind: Mind) -> None:
    # S001-12: a day that is only named is no question about it
    empty = "Memory has nothing from the requested time"
    noted = {text for text in (*NAMES_A_DAY, *ASKS_FOR_A_TIME) if empty in (await mind.context(text)).text}
    assert noted == set(ASKS_FOR_A_TIME)
