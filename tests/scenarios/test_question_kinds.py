"""Kinds of inputs: the kind of a question in several languages, and the frame, with a model to break a tie."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from newton.agent.llm.structured import StructuredLLM
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest
from newton.dialogue import sessions
from newton.dialogue.messages import Message, Role
from newton.memory import store
from newton.memory.recall import recall
from newton.memory.search_types import MemorySearch, SearchLimits
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_replay import hindsight
from tests.support import NOON, teller

TESTS = ("the login", "the budget page", "the export", "the deployment")


async def say(mind: Mind, at: datetime, *said: str, role: Role = "user") -> None:
    ctx = teller(mind.agent_id, now=at)
    lines = [Message(role=role, content=words, said_at=at) for words in said]
    async with mind.db.transaction(mind.agent_id) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=mind.agent_id, ref=f"{at:%Y-%m-%d}", now=at)
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)


async def ask(mind: Mind, text: str, *, tokens: int = 600, fill: bool = False) -> Bundle:
    request = ContextBuildRequest(agent_id=mind.agent_id, input=text, tokens=tokens, fill=fill)
    return await mind.contexts.build(request)


def lines(bundle: Bundle, *wanted: str) -> Sequence[int]:
    """The places of the wanted texts in the context; -1 for one that is not there."""
    return [bundle.text.find(text) for text in wanted]


async def test_a_timeline_stands_in_the_order_of_time_and_is_replayed_so(mind: Mind) -> None:
    for day, subject in enumerate(TESTS):
        await say(mind, NOON - timedelta(days=40 - 10 * day), f"I wrote the tests of {subject} today.")
    await mind.settle()
    bundle = await ask(mind, "In what order did I write the tests?", fill=True)
    assert bundle.as_json()["question"]["kind"] == "timeline"
    places = lines(bundle, *TESTS)
    assert -1 not in places
    assert places == sorted(places)
    assert (await hindsight(mind).replay(str(bundle.bundle_id))).identical


async def test_an_instruction_comes_with_a_request_of_its_domain_and_a_preference_with_requests_alone(
    mind: Mind,
) -> None:
    await say(mind, NOON - timedelta(days=9), "Always include the price when I ask about a hotel.")
    await say(mind, NOON - timedelta(days=8), "The hotel was loud last time, so I prefer a hotel outside of the city.")
    for day in range(7):
        await say(mind, NOON - timedelta(days=day), f"Visit {day} of the dentist in Vienna was short.")
    await mind.settle()
    request = await ask(mind, "Suggest a hotel in Vienna.")
    reasons = {item.text.partition(": ")[2][:12]: item.reason for item in request.items}
    assert "a standing instruction that applies" in reasons["Always inclu"]
    assert "a standing preference that applies" in reasons["The hotel wa"]
    question = await ask(mind, "Is there a hotel in Vienna?")
    assert not any("standing preference" in item.reason for item in question.items)


async def test_a_mark_is_forgotten_with_its_message_and_assistants_are_not_marked(mind: Mind) -> None:
    await say(mind, NOON, "Always answer in French.")
    await say(mind, NOON, "Always answer in German.", role="assistant")
    (marked,) = await mind.fetchval("select array_agg(memory_id) from memory.standing_statements")
    await mind.forget(marked)
    assert await mind.fetchval("select count(*) from memory.standing_statements") == 0


async def test_a_question_asked_before_does_not_stand_above_its_answer(mind: Mind) -> None:
    question = "What did we decide about the database?"
    await say(mind, NOON - timedelta(days=9), "We decided on PostgreSQL for the orders service.")
    for day, form in enumerate(("", "Hey, ", "So ", "And ")):
        await say(mind, NOON - timedelta(days=8 - day), f"{form}{question if not form else question.lower()}")
    await mind.settle()
    bundle = await ask(mind, question, fill=True)
    ranked = sorted((c for c in bundle.candidates if c.kind == "exchange"), key=lambda c: -c.score)
    assert "PostgreSQL" in ranked[0].text


async def test_a_long_procedure_leaves_room_for_three_facts(mind: Mind) -> None:
    # one long general text never crowds out three that answer
    steps = " ".join(f"Step {n}: check the release notes of the release and ask the team." for n in range(12))
    await say(mind, NOON - timedelta(days=3), f"How we release in general: {steps}")
    facts = [
        "The release of May needs a new key.",
        "The release of May is on Tuesday.",
        "Ana signs the release of May.",
    ]
    await say(mind, NOON - timedelta(days=2), *facts)
    await mind.settle()
    bundle = await ask(mind, "What does the release of May need?", tokens=300, fill=True)
    assert -1 not in lines(bundle, *facts)


TOLD = {
    "de": ("Die Verträge liegen im grauen Ordner.", "Wo ist der Vertrag?"),
    "fr": ("Nous avons réparé les vélos dans la cave.", "Où réparer un velo ?"),
    "ru": ("Запасные ключи лежат под цветочными горшками.", "Где запасной ключ?"),
    "zh": ("备用钥匙放在蓝色花盆下面。", "钥匙在哪里？"),
    "ja": ("予備の鍵は青い植木鉢の下にあります。", "鍵はどこですか？"),
}
OTHER = "The deployment of the budget page was late again on day {day}."


async def find_by_words(mind: Mind, text: str) -> list[str]:
    """Return what the search by words alone finds."""
    search = MemorySearch(db=mind.db, agent_id=mind.agent_id, limits={"exchange": SearchLimits(9, 9)})
    found = await recall(text, embedder=None, search=search)
    return [one.spoken_text for one in found.memories if one.lexical > 0]


@pytest.mark.parametrize("code", TOLD)
async def test_words_are_found_by_their_stems_in_the_language_of_the_text(mind: Mind, code: str) -> None:
    told, asked = TOLD[code]
    await say(mind, NOON - timedelta(days=9), told)
    for day in range(6):
        await say(mind, NOON - timedelta(days=day), OTHER.format(day=day))
    await mind.settle()
    bundle = await ask(mind, asked)
    assert lines(bundle, told) != [-1]
    assert await find_by_words(mind, asked) == [told]
    async with mind.db.transaction(mind.agent_id) as tx:
        counts = await store.count_by_language(tx, agent_id=mind.agent_id)
    assert counts == {"en": 6, code: 1}


async def test_names_are_found_across_languages(mind: Mind) -> None:
    await say(mind, NOON - timedelta(days=3), "Charles hat die Unterlagen mit nach Hause genommen.")
    for day in range(3):
        await say(mind, NOON - timedelta(days=day), OTHER.format(day=day))
    await mind.settle()
    assert await find_by_words(mind, "What did Charles do?") == ["Charles hat die Unterlagen mit nach Hause genommen."]


UNCLEAR, CLEAR = "zzz <input>", "Should we use tabs or spaces?"


class Listening(HashEmbedder):
    """Keeps the texts it was given."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.heard += texts
        return await super().embed(texts)


def asking(mind: Mind, model: ScriptedChat, per_day: int = 10_000) -> ContextBuilder:
    asker = StructuredLLM(model=model, tokens_per_day=per_day, scope=mind.scope)
    return replace(mind.contexts, tiebreak=asker.pick_frame)


async def built(contexts: ContextBuilder, mind: Mind, text: str) -> Bundle:
    return await contexts.build(ContextBuildRequest(agent_id=mind.agent_id, input=text, tokens=2_000))


async def test_a_model_breaks_a_tie_among_the_close_frames(mind: Mind) -> None:
    model = ScriptedChat('{"frame": "creative"}')
    choice = (await built(asking(mind, model), mind, UNCLEAR)).frame_choice
    assert (choice.frame, choice.unsure) == ("creative", False)
    assert choice.reason == "a model chose it from conversation, creative, debug"
    ((asked,),) = model.received
    assert "- creative: " in asked.text
    assert "zzz ‹input›" in asked.text
    assert await mind.fetchval("select purpose from runtime.usage") == "frame"


async def test_a_model_is_not_asked_when_the_frame_is_clear(mind: Mind) -> None:
    model = ScriptedChat('{"frame": "creative"}')
    assert (await built(asking(mind, model), mind, CLEAR)).frame_choice.frame == "decision"
    assert model.received == []


async def test_a_model_that_fails_or_answers_something_else_changes_nothing(mind: Mind) -> None:
    plain = (await built(mind.contexts, mind, UNCLEAR)).frame_choice
    assert plain.unsure
    for model in (ScriptedChat(), ScriptedChat("Sure!"), ScriptedChat('{"frame": "task"}')):
        assert (await built(asking(mind, model), mind, UNCLEAR)).frame_choice == plain
    spent = ScriptedChat('{"frame": "creative"}')
    assert (await built(asking(mind, spent, per_day=1), mind, UNCLEAR)).frame_choice == plain
    assert spent.received == []


async def test_the_frame_is_chosen_by_what_stands_behind_the_opening(mind: Mind) -> None:
    mind.embedder = embedder = Listening()
    await mind.context("Hello, which ferry goes to Split?")
    assert sorted(embedder.heard) == ["Hello, which ferry goes to Split?", "which ferry goes to Split?"]
    embedder.heard.clear()
    await mind.context("Which ferry goes to Split?")
    assert embedder.heard == ["Which ferry goes to Split?"]
    embedder.heard.clear()
    await mind.context("Hello, which ferry goes to Split?", frame="question")
    assert embedder.heard == ["Hello, which ferry goes to Split?"]
