"""Questions asked before, repeated replies and shipped procedures do not displace what answers a question."""

from dataclasses import replace

import pytest

from newton.content.skills import load_skills
from newton.heart.procedures import sync_procedures
from newton.providers import token_counter
from tests.scenarios.conftest import Mind, load_minilm
from tests.support import ground, teller

OTHERS = (
    "I had pasta for lunch.",
    "My sister is visiting in June.",
    "The dentist moved to Oak Street.",
    "I bought a blue bicycle.",
    "The kitchen tap drips.",
    "We watched a film about whales.",
    "My boss is on holiday.",
    "The cat sleeps on the sofa.",
    "I read a book on Roman roads.",
    "My neighbour plays the drums.",
)
PARKED = "The car is on level 3 of the garage on Mill Street, next to the lift."
ASKED = ("Where did I park the car?", "where did I park my car", "So where is the car parked?", "Where's my car?")
REPLIES = (
    "Sorry, I could not reach the calendar service. Please try again in a few minutes.",
    "I'm sorry, I couldn't reach the calendar service just now - try again in a few minutes!",
)


@pytest.fixture
def knowing(mind: Mind) -> Mind:
    return replace(mind, embedder=load_minilm())


async def test_a_question_that_was_asked_before_ranks_below_the_fact(knowing: Mind) -> None:
    # S002-3
    await knowing.hear(*OTHERS, PARKED)
    await knowing.hear(*ASKED, session="s2")
    for number, question in enumerate(ASKED):
        await knowing.hear(question, session=f"other-{number}")
    for question in ASKED:
        recalled = await knowing.verbs.recall(question)
        shown = [found.spoken_text for found in recalled.memories]
        assert shown[0] == PARKED and set(ASKED).isdisjoint(shown), question
        best = max(recalled.probabilities, key=recalled.probabilities.__getitem__)
        assert best == recalled.memories[0].memory_id, question
        text = (await knowing.context(question)).text
        assert PARKED in text and "may not answer" not in text
        assert not any(f"User: {asked}" in text for asked in ASKED), question


async def test_an_answer_in_other_words_is_a_match(knowing: Mind) -> None:
    # S002-3: neither a word nor the meaning of the text is near, but it is judged to answer
    await knowing.hear(*OTHERS, "Ravi won't touch coriander, says it tastes of soap")
    recalled = await knowing.verbs.recall("what should I leave out of the curry?")
    assert "coriander" in recalled.memories[0].spoken_text and recalled.memories[0].lexical == 0
    assert recalled.has_match
    assert not replace(recalled, probabilities={}).has_match


async def test_earlier_questions_on_other_things_are_not_recalled(knowing: Mind) -> None:
    # S002-3: they have words of the question, and answer nothing
    await knowing.hear(*OTHERS, PARKED)
    asked = (
        "Where did I put the spare key?",
        "Where did I leave my reading glasses?",
        "Who parked in front of the gate?",
    )
    for number, question in enumerate(asked):
        await knowing.hear(question, session=f"earlier-{number}")
    recalled = await knowing.verbs.recall("Where did I park the car?", limit=50)
    probabilities = [recalled.probabilities.get(found.memory_id, 0.0) for found in recalled.memories]
    assert recalled.memories and probabilities == sorted(probabilities, reverse=True)
    assert set(asked).isdisjoint(found.spoken_text for found in recalled.memories)
    every = await knowing.verbs.with_min_relevance(0).recall("Where did I park the car?", limit=50)
    assert not set(asked).isdisjoint(found.spoken_text for found in every.memories)


async def test_a_reply_that_is_repeated_in_other_words_is_shown_once(knowing: Mind) -> None:
    # S002-3
    await knowing.hear(*OTHERS, "My calendar is blue.")
    for number in range(10):
        await knowing.hear(REPLIES[number % 2], session=f"day-{number}", role="assistant")
    await knowing.hear("The calendar service was down on 4 May.", role="assistant", session="told")
    question = "What did you say about the calendar service?"
    shown = [found.summary for found in (await knowing.verbs.recall(question)).memories]
    assert sum("reach the calendar" in text for text in shown) == 1
    assert any("4 May" in text for text in shown)
    bundle = await knowing.context(question, fill=True)
    assert bundle.text.count("reach the calendar") == 1 and "4 May" in bundle.text
    every = await knowing.verbs.with_min_relevance(0).recall(question, limit=50)
    assert sum("reach the calendar" in found.summary for found in every.memories) == 10


@pytest.mark.parametrize("others", [(), OTHERS])
async def test_a_shipped_procedure_does_not_enter_for_a_personal_question(
    knowing: Mind, others: tuple[str, ...]
) -> None:
    # S002-3
    ctx = teller(knowing.agent_id, count_tokens=token_counter.count, trust="user", now=knowing.clock.now())
    async with knowing.db.transaction(knowing.agent_id) as tx:
        await sync_procedures(tx, load_skills().skills, ctx=ground(ctx))
    wishes = ("Answer me in short sentences.", "Always answer me in British English.", "I like answers without lists.")
    await knowing.know(*wishes, *others)
    bundle = await knowing.context("How should you answer me?")
    assert {item.kind for item in bundle.items} == {"fact"} and all(wish in bundle.text for wish in wishes)
    recalled = await knowing.verbs.recall("How should you answer me?")
    assert {found.kind for found in recalled.memories} == {"fact"}
    asked = await knowing.context("Is it true that whales sing? Do some research.")
    assert "procedure" in {item.kind for item in asked.items}, "it is triggered"
