"""The figures of contexts, from turns through the product's own doors."""

from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.loop.turn import TurnInput
from newton.cognition.metrics.metrics import QualityMetric
from newton.cognition.metrics.service import MetricsService
from newton.errors import InputError
from newton.memory.forgetting import forget
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import take
from tests.support import teller

FACTS = ("The ferry is called Artemis.", "The ferry leaves at nine from Pier 4.", "The kettle of the ferry is blue.")
ASKED = "What is the ferry called?"


async def figures(mind: Mind, days: int = 7) -> dict[str, QualityMetric]:
    measuring = MetricsService(agent_id=mind.agent_id, db=mind.db, clock=mind.clock)
    return {figure.name: figure for figure in (await measuring.report(days)).metrics}


async def ask(mind: Mind, *replies: str, session: str = "s1", text: str = ASKED) -> UUID:
    session_id = await mind.session(session)
    turns = mind.turns(ScriptedChat(*replies) if replies else None)
    for _ in replies or ("",):
        mind.clock.advance(timedelta(minutes=1))
        await take(turns, TurnInput(session_id=session_id, text=text))
    return session_id


async def test_what_a_reply_uses_is_counted_and_what_it_only_stands_beside_is_not(mind: Mind) -> None:
    # S002-22: recall precision
    await mind.know(*FACTS)
    await ask(mind, "It is Artemis.", text="What is the ferry called, and where does the ferry leave from?")
    assert (await figures(mind))["recall precision"].value == pytest.approx(1 / 3)


@pytest.mark.parametrize("times", [1, 200])
async def test_a_reply_about_something_else_uses_nothing_however_long_it_is(mind: Mind, times: int) -> None:
    # S002-22: unrelated text does not count
    await mind.know(*FACTS)
    await ask(mind, " ".join(["The garden needs water, and nine geese crossed the blue road."] * times))
    assert (await figures(mind))["recall precision"].value == 0.0


async def test_a_reply_that_only_quotes_memory_does_not_praise_it(mind: Mind) -> None:
    await mind.know(*FACTS)
    await ask(mind)
    counted = await figures(mind)
    assert counted["recall precision"].n == 0
    assert counted["budget utilisation"].n == 1


async def test_what_only_says_again_what_is_there_is_no_memory_of_a_day(mind: Mind) -> None:
    await ask(mind, "We decided to take the ferry Artemis.")
    assert await mind.fetchval("select count(*) from dialogue.artifacts") == 1
    assert (await figures(mind))["memories a day"].n == 2, "the question and the reply"


async def test_a_turn_is_linked_with_its_own_lines_and_context(mind: Mind) -> None:
    session_id = await ask(mind, "It is Artemis.", session="one")
    (row,) = await mind.fetch(
        "select t.session_id, q.content as input_position, r.content as reply_position,"
        " b.input, t.method, t.answered_by"
        " from cognition.turns as t join cognition.bundles as b using (agent_id, bundle_id)"
        " join dialogue.messages as q on q.agent_id = t.agent_id and q.session_id = t.session_id"
        " and q.position = t.input_position"
        " join dialogue.messages as r on r.agent_id = t.agent_id and r.session_id = t.session_id"
        " and r.position = t.reply_position"
    )
    assert tuple(row) == (session_id, ASKED, "It is Artemis.", ASKED, "built", "model")


async def test_what_is_forgotten_takes_its_contexts_and_leaves_the_turn(mind: Mind) -> None:
    await mind.know(*FACTS)
    await ask(mind, "It is Artemis.", "Artemis it is.")
    async with mind.db.transaction(mind.agent_id) as tx:
        gone = await tx.fetchval("select memory_id from memory.memories where summary = $1", FACTS[0])
        await forget(tx, [gone], derived=False, reason="a test", ctx=teller(mind.agent_id))
    counted = await figures(mind)
    assert (counted["budget utilisation"].n, counted["refresh rate"].n) == (0, 1)


async def test_facts_told_again_and_memories_a_day(mind: Mind) -> None:
    # S002-22: memories per day, fact confirmation rate
    await mind.know(*FACTS, FACTS[0], FACTS[0])
    counted = await figures(mind)
    assert counted["facts confirmed"].value == pytest.approx(1 / 3)
    assert counted["memories a day"].value == pytest.approx(3 / 7)


async def test_another_agent_has_figures_of_its_own(mind: Mind) -> None:
    await mind.know(*FACTS)
    await ask(mind, "It is Artemis.")
    other = MetricsService(agent_id=UUID(int=9), db=mind.db, clock=mind.clock)
    assert {figure.n for figure in (await other.report(7)).metrics} == {0}


@pytest.mark.parametrize("days", [0, -1, 4_000])
async def test_a_period_that_is_none_is_refused(mind: Mind, days: int) -> None:
    with pytest.raises(InputError, match="not possible"):
        await figures(mind, days)
