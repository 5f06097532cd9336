"""What happened replaces what was told, without a word that announces a change and without an LLM."""

from datetime import timedelta

import pytest

from newton.agent.maintenance.statement_extraction import extract_statements
from newton.agent.services.memories import FactDraft
from newton.dialogue import session_close, sessions
from newton.dialogue.messages import Message
from tests.scenarios.conftest import Mind
from tests.scenarios.test_changed_facts import compare_all
from tests.scenarios.test_current_facts import another_mind, outcome, tell

pytestmark = pytest.mark.usefixtures("minilm")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I drink three coffees a day.", "I have been off coffee since the New Year."),
        ("My physio is Mr Brandt.", "Mr Brandt retired and a Ms Okoye does my knee these days."),
    ],
)
async def test_what_happened_replaces_what_was_told(mind: Mind, older: str, newer: str) -> None:
    # S002-16: superseded when contradicted by a newer fact, in everyday words
    first, second = await tell(mind, FactDraft(content=older), FactDraft(content=newer))
    assert await outcome(mind, first, second) == "update"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "I take 40 mg of citalopram in the morning.",
            "The doctor cut my citalopram down to 20.",
        ),  # safety needs a person
        ("The staff meeting is on Wednesdays at nine.", "The boss shifted the staff meeting to Fridays after lunch."),
        ("I am engaged to Tomas.", "Tomas and I said yes at the town hall on Saturday."),
        ("Nora takes the bus to work.", "Nora bought a cargo bike and rides to the office in all weathers."),
        ("Our goalkeeper is Piet.", "Piet broke his wrist for good and young Sami keeps goal from now on."),
    ],
)
async def test_what_probably_happened_is_shown_beside_what_was_told(mind: Mind, older: str, newer: str) -> None:
    # S002-16: when the evidence is not clear both are current, as a dated pair
    first, second = await tell(mind, FactDraft(content=older), FactDraft(content=newer))
    assert await outcome(mind, first, second) in ("update", "unsure")


async def test_what_only_looks_like_a_change_leaves_what_was_told(mind: Mind) -> None:
    # S002-16: only what contradicts a fact supersedes it
    pairs = [
        ("I play the drums in the school band.", "My brother sold his drum kit to a kid from year nine."),
        ("Our flat is on the third floor.", "We handed back the keys of the holiday flat on Monday."),
        ("My physio is Mr Brandt.", "Mr Brandt says my knee needs six more weeks."),
        ("Nora takes the bus to work.", "Nora bought a cargo bike for her husband."),
        ("The staff meeting is on Wednesdays at nine.", "The staff meeting this week dragged on until lunch."),
        ("I take 40 mg of citalopram in the morning.", "Citalopram makes me sleepy in the afternoon."),
        ("Grandpa drives a green Volvo.", "Grandpa's neighbour wrote off his Volvo last night."),
    ]
    for number, (older, newer) in enumerate(pairs):
        own = await another_mind(mind, f"teller{number}")
        first, second = await tell(own, FactDraft(content=older), FactDraft(content=newer))
        assert (await outcome(own, first, second), older) == ("compatible", older)


async def test_the_part_of_a_message_that_replaces_a_fact_becomes_a_fact(mind: Mind) -> None:
    # S002-16: alone, this part of the message does not look like something to remember
    await tell(mind, FactDraft(content="We pay 900 euros of rent for our flat."))
    async with mind.scope.write("user") as (tx, ctx):
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref="letter", now=ctx.now)
        text = "rent went up to 950. What is the law on that?"
        said = [Message(role="user", content=text, said_at=ctx.now)]
        await sessions.append(tx, said, session_id=session_id, ctx=ctx)
        await session_close.close_session(tx, session_id=session_id, ctx=ctx)
    await extract_statements(mind.db, mind.scope.write_context(), embedder=mind.embedder, limit=10)
    mind.clock.advance(timedelta(hours=1))
    await compare_all(mind)
    assert set(await mind.facts()) == {"Rent went up to 950."}
