"""What becomes of facts that a person corrects, or takes back, later in the session."""

import pytest

from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.conflicts import ConflictService
from tests.scenarios.conftest import Mind, newton

FACTS = """
    select m.full_text as text, f.is_current
    from heart.facts as f
    join memory.memories as m using (agent_id, memory_id)
    order by m.created_at, m.full_text
"""


def maintenance(mind: Mind) -> MaintenanceService:
    assert mind.embedder
    return newton(mind, mind.embedder).maintenance("job extract")


async def current(mind: Mind) -> list[str]:
    return [row["text"] for row in await mind.fetch(FACTS) if row["is_current"]]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_correction_replaces_the_fact_and_marks_the_message(mind: Mind, *, at_once: bool) -> None:
    # S002-16: also when the wrong value was said and not yet extracted
    await mind.hear("My aunt Milan lives in Brno.", session="s")
    if not at_once:
        await maintenance(mind).learn_statements()
    await mind.hear("sorry, Milena, not Milan", session="s")
    await maintenance(mind).learn_statements()
    assert await current(mind) == ["My aunt Milena lives in Brno."]
    assert [row["text"] for row in await mind.fetch(FACTS)] == [
        "My aunt Milan lives in Brno.",
        "My aunt Milena lives in Brno.",
    ]
    await mind.hear("no, Milan it is", session="s")
    await maintenance(mind).learn_statements()
    assert await current(mind) == ["My aunt Milan lives in Brno."]


@pytest.mark.parametrize(
    ("held", "denied"),
    [
        ("My car is red.", "My car is not blue."),
        ("Ich wohne in Graz.", "Nein, ich bin nicht nach Linz gezogen, das war mein Bruder."),
        ("Ich wohne in Graz.", "Ich wohne nicht in Linz."),
        ("Vivo en Sevilla.", "No vivo en Cádiz."),
    ],
)
async def test_a_denial_of_another_value_leaves_the_true_one(mind: Mind, held: str, denied: str) -> None:
    # S002-16
    await mind.hear(held, session="s")
    await maintenance(mind).learn_statements()
    await mind.hear(denied, session="t")
    await maintenance(mind).learn_statements()
    assert held in await current(mind)
    assert not {"Vivo en Cádiz.", "My car is blue."} & {*await current(mind)}


@pytest.mark.parametrize("session", ["s", "t"])
@pytest.mark.parametrize(
    ("held", "denied", "left"),
    [
        ("My car is blue.", "my car isn't blue", []),
        ("My brother's car is blue.", "my car isn't blue", ["My brother's car is blue."]),
        ("We moved to Hull last year.", "no we never moved", []),
        ("I live in Graz.", "I don't live in Graz, I live in Linz.", ["I live in Linz."]),
        ("I am diabetic.", "I'm not diabetic", ["I am diabetic.", "I'm not diabetic."]),  # a person settles the two
        ("I like fish.", "I'm not a vegetarian", ["I like fish."]),
        ("I like fish.", "I don't eat meat", ["I don't eat meat.", "I like fish."]),
        ("Ich wohne in Graz.", "Ich wohne nicht in Graz.", []),
    ],
)
async def test_a_denial_ends_what_it_denies_and_is_no_fact(
    mind: Mind, held: str, denied: str, left: list[str], session: str
) -> None:
    # S002-16: how somebody lives, and a limit, stay facts
    await mind.hear(held, session="s")
    await maintenance(mind).learn_statements()
    await mind.hear(denied, session=session)
    await maintenance(mind).learn_statements()
    assert sorted(await current(mind)) == left


async def test_what_was_no_fact_is_written_whole_and_what_is_taken_back_ends(mind: Mind) -> None:
    # S002-16
    await mind.hear("alarm is at eight", "scrap that, twenty past seven", session="s")
    await mind.hear("I sold my boat to a pirate from Linz.", "haha, just kidding!", session="t")
    await maintenance(mind).learn_statements()
    assert await current(mind) == ["Alarm is at twenty past seven."]


async def test_nothing_said_in_a_role_play_is_a_fact(mind: Mind) -> None:
    # S002-17
    await mind.hear("Let's practise my interview. You are the boss, I am Pavel.", session="s")
    await maintenance(mind).learn_statements()
    await mind.hear("I have worked at Bosch for thirty years.", session="s")
    await maintenance(mind).learn_statements()
    assert await current(mind) == []


@pytest.mark.parametrize(
    "others",
    [
        "Is this spam?\n\nFrom: Tom <tom@t.example>\nSubject: bees\n\nSorry, not Linz, Graz.",
        "> Sorry, not Linz, Graz.",
        'Tom wrote: "forget Linz". What does he mean?',
        "Translate into German: Sorry, not Linz, Graz.",
    ],
)
async def test_the_words_of_others_correct_no_fact(mind: Mind, others: str) -> None:
    # S002-16
    await mind.hear("I live in Linz.", others, session="s")
    await maintenance(mind).learn_statements()
    assert await current(mind) == ["I live in Linz."]


async def test_a_correction_of_a_fact_on_safety_contests_it(mind: Mind) -> None:
    # S002-16: whether an app relayed the message, it does not say
    await mind.hear("I am allergic to penicillin.", "sorry, not penicillin, peanuts", session="s")
    await maintenance(mind).learn_statements()
    assert {*await current(mind)} == {"I am allergic to penicillin.", "I am allergic to peanuts."}
    (pair,) = await ConflictService(scope=mind.scope).list_conflicts()
    assert (pair.newer.text, pair.older.text) == ("I am allergic to peanuts.", "I am allergic to penicillin.")
    await mind.hear("no, that's wrong", session="s")
    await maintenance(mind).learn_statements()
    assert "I am allergic to penicillin." in await current(mind)


async def test_a_corrected_question_is_no_fact(mind: Mind) -> None:
    # S002-16
    await mind.hear("How far is Linz from Rome?", "sorry, I meant Graz, not Linz", session="s")
    await maintenance(mind).learn_statements()
    assert await current(mind) == []
