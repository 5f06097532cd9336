"""Which memories a question is given: those of its topic and of whom it names, and nothing that only looks like it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.sessions import load_scripts, replay_session, store_facts, summarize
from newton.agent.services.memories import FactDraft, MemoryService
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.frames.training import load_or_train
from newton.content.skills import load_skills
from newton.content.yaml_files import parse_trusted
from newton.heart.procedures import sync_procedures
from newton.providers import token_counter
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind, load_minilm, newton
from tests.scenarios.test_standing import AGAIN, ASKED, FERRY, Talk
from tests.support import ground, teller

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.slow  # tests/unit/test_refresh.py has the rules
async def test_a_topic_keeps_its_context_and_another_topic_gets_its_own(mind: Mind, tmp_path: Path) -> None:
    # S002-14, S002-22: fewer than 0.3 refreshes per turn, and a related memory is in the context
    own = replace(mind, embedder=load_minilm())
    scripts = load_scripts(DATA / "conversations.yaml")[:5:2]
    unrelated = (DATA / "unrelated_facts.txt").read_text().splitlines()[:60]
    services = newton(own, load_minilm())
    classifier = await load_or_train(services.frames, load_minilm(), cache=tmp_path)
    services = replace(services, context_builder=replace(services.context_builder, classifier=classifier))
    await store_facts(services, [*(fact for script in scripts for fact in script.memories), *unrelated])
    turns = [turn for script in scripts for turn in await replay_session(services, script)]
    figures = summarize(turns)
    assert figures["refresh_rate"] < 0.3, figures
    assert figures["changes_refreshed"] == len(scripts), figures
    # of 13 turns; the best fact for a follow-up such as "So who pays it then?" alone may be on another topic
    assert figures["has_relevant_top_memory"] >= 0.8, figures


async def test_what_is_learnt_from_the_conversation_does_not_change_its_own_context(mind: Mind) -> None:
    # S002-14, S002-17
    assert mind.embedder
    await mind.know(FERRY)
    model = ScriptedChat(*["Let me see."] * 10)
    talk = Talk(mind, mind.turns(model), await mind.session(), model)
    maintenance = newton(mind, mind.embedder).maintenance("job extract")
    first = await talk.given(ASKED)
    stated = "My aunt Petra works in the harbour of the ferry Artemis."
    standing = await talk.given(stated)
    assert await maintenance.learn_statements() == 1
    await mind.settle()
    again = await talk.given(AGAIN)
    assert (standing.method, again.method) == ("stood", "stood"), again.reason
    assert again.bundle is first.bundle
    rebuilt = await talk.given(AGAIN, frame="debug")
    reasons = {item.text: item.reason for item in rebuilt.bundle.rejected_candidates if item.kind == "fact"}
    assert reasons == {stated: "the message itself is sent to the model"}
    mind.clock.advance(timedelta(minutes=1))
    other = replace(talk, session_id=await mind.session("another"))
    assert stated in (await other.given(ASKED)).bundle.text


OTHER_FACTS = (
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
PARKING = (
    "Where did I park the car?",
    "where did I park my car",
    "So where is the car parked?",
    "Where's my car?",
)
REPLIES = (
    "Sorry, I could not reach the calendar service. Please try again in a few minutes.",
    "I'm sorry, I couldn't reach the calendar service just now - try again in a few minutes!",
)


@pytest.fixture
def knowing(mind: Mind) -> Mind:
    return replace(mind, embedder=load_minilm())


async def test_a_question_that_was_asked_before_ranks_below_the_fact(knowing: Mind) -> None:
    # S002-3
    await knowing.hear(*OTHER_FACTS, PARKED)
    await knowing.hear(*PARKING, session="s2")
    for number, question in enumerate(PARKING):
        await knowing.hear(question, session=f"other-{number}")
    for question in PARKING:
        recalled = await knowing.verbs.recall(question)
        shown = [found.spoken_text for found in recalled.memories]
        assert shown[0] == PARKED and set(PARKING).isdisjoint(shown), question
        best = max(recalled.probabilities, key=recalled.probabilities.__getitem__)
        assert best == recalled.memories[0].memory_id, question
        text = (await knowing.context(question)).text
        assert PARKED in text and "may not answer" not in text
        assert not any(f"User: {asked}" in text for asked in PARKING), question


async def test_an_answer_in_other_words_is_a_match(knowing: Mind) -> None:
    # S002-3: neither a word nor the meaning of the text is near, but it is judged to answer
    await knowing.hear(*OTHER_FACTS, "Ravi won't touch coriander, says it tastes of soap")
    recalled = await knowing.verbs.recall("what should I leave out of the curry?")
    assert "coriander" in recalled.memories[0].spoken_text and recalled.memories[0].lexical == 0
    assert recalled.has_match
    assert not replace(recalled, probabilities={}).has_match


async def test_earlier_questions_on_other_things_are_not_recalled(knowing: Mind) -> None:
    # S002-3: they have words of the question, and answer nothing
    await knowing.hear(*OTHER_FACTS, PARKED)
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
    await knowing.hear(*OTHER_FACTS, "My calendar is blue.")
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


@pytest.mark.parametrize("others", [(), OTHER_FACTS])
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


NEEDING = "What is the ferry to Bergen called?"
NEAR = "The ferry to Bergen is called Artemis."
FAR = "[2026-11-21] User: The roof of the barn leaks when it rains."
ONLY_ASKS = "[2026-11-21] User: What is the ferry called again?"


def shown(bundle: Bundle) -> set[str]:
    return {item.text for item in bundle.items}


async def test_a_turn_gets_what_is_near_and_a_budget_that_is_given_is_filled(mind: Mind) -> None:
    await mind.know(NEAR)
    await mind.hear("The roof of the barn leaks when it rains.", "Maybe.", "The cow is brown.", session="earlier")
    await mind.hear("What is the ferry called again?", "Artemis, the ferry to Bergen.", session="yesterday")
    filled = await mind.context(NEEDING, budget=2_000)
    everything = await mind.context(NEEDING, budget=2_000, fill=True)
    needed = await mind.context(NEEDING, budget=2_000, adaptive_budget=True)
    assert {NEAR, FAR} <= shown(filled)
    assert ONLY_ASKS not in shown(filled), "it asks the same"
    assert {NEAR, FAR, ONLY_ASKS} <= shown(everything)
    assert NEAR in shown(needed)
    assert not {FAR, ONLY_ASKS} & shown(needed)
    why = {c.text: c.reason for c in needed.rejected_candidates}
    assert (why[FAR], why[ONLY_ASKS]) == ("too far from the input", "only a question")


async def test_a_line_that_says_something_before_it_asks_is_not_one_that_only_asks(mind: Mind) -> None:
    await mind.hear("The ferry to Bergen was late. Was it called Artemis?", session="yesterday")
    assert len(shown(await mind.context(NEEDING, adaptive_budget=True))) == 1


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


BELIEFS: dict[str, Any] = parse_trusted(
    (Path(__file__).parents[1] / "data/labelled_beliefs.yaml").read_text(encoding="utf-8")
)


def test_the_questions_have_zero_to_four_right_beliefs() -> None:
    counts = [len(question["right"]) for question in BELIEFS["questions"]]
    assert (len(BELIEFS["facts"]), len(counts), min(counts), max(counts)) == (300, 100, 0, 4)
    assert all(ref in BELIEFS["facts"] for question in BELIEFS["questions"] for ref in question["right"])


@pytest.mark.slow
async def test_recall_returns_the_right_beliefs_and_few_others(mind: Mind) -> None:
    # S002-3: what hardly answers is left out, and "nothing known" is an answer
    mind = replace(mind, embedder=load_minilm())
    service = MemoryService(scope=mind.scope)
    ids = {ref: (await service.remember(FactDraft(content=text))).memory_id for ref, text in BELIEFS["facts"].items()}
    await mind.settle()
    old = {ids[ref] for ref in BELIEFS["superseded"]}
    right = returned = wanted = unknown = 0
    for question in BELIEFS["questions"]:
        recalled = await service.recall(question["ask"], kinds=["fact"])
        found = {memory.memory_id for memory in recalled.memories} - old
        answers = {ids[ref] for ref in question["right"]}
        right, returned, wanted = right + len(found & answers), returned + len(found), wanted + len(answers)
        unknown += not answers and len(found) <= 2
    assert right / wanted >= 0.84
    assert right / returned >= 0.3, "it was .05 without a minimum"
    assert unknown >= 4
