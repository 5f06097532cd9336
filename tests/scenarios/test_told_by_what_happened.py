"""What happened replaces what was told, or a half of it, without a word that announces a change and without an LLM."""

from datetime import timedelta

import pytest

from newton.agent.maintenance.statement_extraction import StatementTools, extract_statements
from newton.agent.services.memories import FactDraft
from newton.dialogue import session_close, sessions
from newton.dialogue.messages import Message
from tests.scenarios.conftest import Mind
from tests.scenarios.reading import Sheet, facts, read
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
    await extract_statements(mind.db, mind.scope.write_context(), tools=StatementTools(mind.embedder), limit=10)
    mind.clock.advance(timedelta(hours=1))
    await compare_all(mind)
    assert set(await mind.facts()) == {"Rent went up to 950."}


# What was said, what is said later, the item by which a model answers, and what is known at the end.
CHANGES = [
    pytest.param(
        "Marta is a nurse on ward 4 and moves to the night team on Monday.",
        "Marta moves to the night team on Wednesday instead.",
        ("update", "Marta moves to the night team on Wednesday."),
        ["Marta is a nurse on ward 4.", "Marta moves to the night team on Wednesday."],
        id="ward",
    ),
    pytest.param(
        "Our van is white, does 28 mpg and is insured until March.",
        "The van is insured until June now.",
        ("update", "Nora's van is insured until June."),
        ["Nora's van is insured until June.", "Our van does 28 mpg.", "Our van is white."],
        id="courier",
    ),
    pytest.param(
        "I have two sisters, Ana in Porto and Rita in Leeds.",
        "Rita lives in York now.",
        ("update", "Nora's sister Rita lives in York."),
        ["Ana is in Porto.", "Nora's sister Rita lives in York."],
        id="sisters",
    ),
    pytest.param(
        "Luna is a beagle, weighs 12 kg and gets Apoquel twice a day.",
        "Luna is off the Apoquel.",
        ("end", ""),
        ["Luna is a beagle.", "Luna weighs 12 kg."],
        id="vet",
    ),
    pytest.param(
        "Staging runs Postgres 15 and the backups go to S3 every night.",
        "We upgraded staging to Postgres 16, and the backups go to Hetzner since then.",
        ("update", "Staging runs Postgres 16."),
        ["Staging runs Postgres 16."],
        id="what the line changes too goes",
    ),
    pytest.param(
        "I live in Leeds and work as a joiner at Hale's.",
        "I moved from Leeds to York.",
        ("update", "Nora moved from Leeds to York."),
        ["I work as a joiner at Hale's.", "Nora moved from Leeds to York."],
        id="what is contradicted goes",
    ),
    pytest.param(
        "I live in Leeds and work as a joiner at Hale's.",
        "I moved to York, still at Hale's.",
        ("update", "Nora moved to York and still works at Hale's."),
        ["Nora moved to York and still works at Hale's."],
        id="nothing stays where it is not sure",
    ),
    pytest.param(
        "Pekel is a grey cat and sleeps in the basket by the stove.",
        "Pekel died in her basket.",
        ("end", ""),
        [],
        id="who is gone",
    ),
]


@pytest.mark.parametrize(("said", "later", "answer", "known"), CHANGES)
async def test_a_model_that_answers_with_one_half_leaves_the_other(
    mind: Mind, said: str, later: str, answer: tuple[str, str], known: list[str]
) -> None:
    # S002-17
    first = (await mind.verbs.remember(FactDraft(content=said, subject="Kim"))).memory_id
    mind.clock.advance(timedelta(days=1))
    await mind.hear(later)

    def change(sheet: Sheet) -> list[dict[str, object]]:
        return [sheet.item(answer[0], later, said, text=answer[1])]

    result = await read(mind, change)
    assert (result.kept, result.dropped) == (1, 0)
    assert await facts(mind) == known
    origins = await mind.fetch(
        "select m.origin, m.trust, f.subject, f.source, f.valid_from from heart.facts as f"
        " join memory.memories as m using (agent_id, memory_id)"
        " where f.memory_id = $1 or m.ref like 'kept:' || $1 || ':%'",
        first,
    )
    assert len(set(origins)) == 1 and len(origins) == 1 + len(known) - (answer[0] == "update")


@pytest.mark.parametrize(
    ("said", "later", "rest"),
    [
        (
            "The gym is on Mill Street and costs 30 a month.",
            "The gym costs 35 a month now.",
            "The gym is on Mill Street.",
        ),
        (
            "The choir meets on Tuesdays and Lena has the key.",
            "The choir meets on Thursdays now instead of Tuesdays.",
            "Lena has the key.",
        ),
        (
            "The shop opens at 9 but the post counter opens at 10.",
            "The post counter opens at half past nine now.",
            "The shop opens at 9.",
        ),
    ],
)
async def test_without_a_model_a_change_of_one_half_replaces_only_this_half(
    mind: Mind, said: str, later: str, rest: str
) -> None:
    # S002-17
    await tell(mind, FactDraft(content=said), FactDraft(content=later))
    assert set(await facts(mind)) == {later, rest}
