"""A fact on somebody else comes after the facts on whom a question names."""

import pytest

from tests.scenarios.conftest import Mind

CARLA = (
    "Carla moved to Bergen in May.",
    "Carla plays the cello in the city orchestra.",
    "Carla is allergic to walnuts.",
    "Carla drives an old green Volvo.",
    "Carla studied chemistry in Ghent.",
    "Carla's sister is called Nora.",
)
OTHERS = ("Ana lives in Porto.", "Bruno lives in Lisbon with his two dogs.", "The office is in Madrid.")


@pytest.fixture
async def known(mind: Mind, minilm: None) -> Mind:
    await mind.know(*CARLA, *OTHERS)
    return mind


async def test_the_facts_on_whom_a_question_names_come_first(known: Mind) -> None:
    for question in ("Where does Carla live?", "Does Carla live alone?", "In which town does Carla live now?"):
        facts = [item.text for item in (await known.context(question)).items if item.kind == "fact"]
        assert facts and "Carla" in facts[0], (question, facts)
        recalled = await known.verbs.recall(question, limit=3)
        assert "Carla" in recalled.memories[0].summary, question


async def test_a_question_that_names_nobody_known_ranks_by_relevance(known: Mind) -> None:
    for question, best in (("Where does Ana live?", "Porto"), ("Where is the office?", "Madrid")):
        items = (await known.context(question)).items
        assert best in items[0].text
