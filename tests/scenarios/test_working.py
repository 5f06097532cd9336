"""What a conversation leaves at hand, and the context made of it without a model or a search."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from newton.agent.loop.turn import TurnInput
from newton.agent.services.working_memory import WorkingMemory
from newton.cognition import working_set
from newton.content.profiles import load_profiles
from newton.providers import token_counter
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.db.world import desk
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import take


class Counting(HashEmbedder):
    """Knows how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += 1
        return await super().embed(texts)


def working(mind: Mind, session_id: UUID) -> WorkingMemory:
    return replace(desk(mind.db, mind.agent_id, session_id), scope=mind.scope)


async def test_what_is_said_and_shown_in_a_session_is_at_hand(mind: Mind) -> None:
    # S000-15, S000-17
    await mind.know("The ferry is called Artemis")
    session_id = await mind.session()
    await take(mind.turns(ScriptedChat("It is Artemis.")), TurnInput(session_id=session_id, text="Which ferry?"))
    mind.clock.advance(timedelta(hours=1))
    await take(mind.turns(ScriptedChat("At noon.")), TurnInput(session_id=session_id, text="And when does it leave?"))
    context = await working(mind, session_id).create_context("recent")
    said = [chosen.scored.found.spoken_text for chosen in context.items]
    assert set(said) == {
        *("The ferry is called Artemis", "Which ferry?", "It is Artemis."),
        *("And when does it leave?", "At noon."),
    }
    newest = {"And when does it leave?", "At noon.", "The ferry is called Artemis"}
    assert set(said[:3]) == newest, "what was shown again is used as lately as what was said"


async def test_no_embedder_and_no_model_is_asked(mind: Mind) -> None:
    # S000-26N
    mind.embedder = Counting()
    await mind.know("The ferry is called Artemis")
    session_id = await mind.session()
    model = ScriptedChat("Artemis.")
    await take(mind.turns(model), TurnInput(session_id=session_id, text="Which ferry?"))
    asked, heard = mind.embedder.asked, len(model.received)
    for strategy in load_profiles():
        assert (await working(mind, session_id).create_context(strategy)).items
    assert (mind.embedder.asked, len(model.received)) == (asked, heard)


async def test_auto_follows_the_frame_that_the_session_is_in(mind: Mind) -> None:
    # S000-F1
    session_id = await mind.session()
    for frame, chosen in (("conversation", "recent"), ("planning", "important"), ("debug", "balanced")):
        said = TurnInput(session_id=session_id, text=f"On {frame}.", frame=frame)
        mind.clock.advance(timedelta(seconds=1))
        await take(mind.turns(ScriptedChat("Good.")), said)
        assert (await working(mind, session_id).create_context("auto")).profile.name == chosen


async def test_a_turn_keeps_the_set_within_its_capacity(mind: Mind) -> None:
    # S000-8, S000-19
    session_id = await mind.session()
    small = mind.turns(ScriptedChat("Good."), working=30)
    for n in range(6):
        mind.clock.advance(timedelta(minutes=1))
        await take(small, TurnInput(session_id=session_id, text=f"The boat number {n} is at the quay of the harbour."))
    async with mind.db.transaction(mind.agent_id) as tx:
        held = await working_set.list_memories(tx, agent_id=mind.agent_id, session_id=session_id)
    assert 0 < sum(found.summary_tokens + 1 for found in held) <= 30
    assert max(found.accessed_at or found.created_at for found in held) == mind.clock.now()


async def test_a_fact_at_hand_has_the_label_of_other_contexts(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis", "The ferry leaves at nine")
    mind.clock.advance(timedelta(days=40))
    session_id = await mind.session()
    await take(mind.turns(ScriptedChat("It is Artemis.")), TurnInput(session_id=session_id, text="Which ferry?"))
    context = await working(mind, session_id).create_context("recent")
    assert "- 21 Nov: The ferry is called Artemis\n" in context.text.replace("Nov '26", "21 Nov")
    lines = sum(token_counter.count(line) for line in context.text.splitlines(keepends=True))
    assert lines <= context.tokens, "labels are counted"
