"""What a conversation leaves at hand, and the context made of it without a model or a search."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.loop.turn import TurnInput, TurnRunner
from newton.agent.maintenance.profile_fitting import ProfileFitter
from newton.agent.services.working_memory import WorkingMemory
from newton.cognition.bundles import training_data
from newton.cognition.working_set import working_set_store
from newton.content.profiles import load_profiles
from newton.errors import ConflictError, InputError
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
    turns = mind.turns(ScriptedChat("Good."))
    small = replace(turns, limits=replace(turns.limits, working=30))
    for n in range(6):
        mind.clock.advance(timedelta(minutes=1))
        await take(small, TurnInput(session_id=session_id, text=f"The boat number {n} is at the quay of the harbour."))
    async with mind.db.transaction(mind.agent_id) as tx:
        held = await working_set_store.list_memories(tx, agent_id=mind.agent_id, session_id=session_id)
    assert 0 < sum(found.summary_tokens + 1 for found in held) <= 30
    assert max(found.accessed_at or found.created_at for found in held) == mind.clock.now()


def learning(mind: Mind) -> ProfileFitter:
    frames = mind.contexts.frames
    return ProfileFitter(profiles=load_profiles(), frames=frames, scope=mind.scope)


async def talk_of_boats(mind: Mind, turns: int) -> None:
    """Each reply repeats what the input asked for by name, so similarity is what there is to learn."""
    dice = random.Random(4)
    boats = [f"Boat{n} is the boat of captain{n} in harbour{n}, painted colour{n}" for n in range(12)]
    await mind.know(*boats)
    for n in range(turns):
        mind.clock.advance(timedelta(minutes=7))
        session_id = await mind.session(f"of boats {n}")
        boat = dice.choice(boats)
        reply = ScriptedChat(f"That is {boat.lower()} indeed.")
        said = TurnInput(session_id=session_id, text=f"What of the boat {boat.split()[0]}? ({n})", frame="question")
        await take(filled(mind.turns(reply)), said)


async def by_profile(mind: Mind, name: str, *, turns: int) -> None:
    own = {frame.name: frame.model_copy(update={"profile": name}) for frame in mind.contexts.frames.values()}
    for _ in range(turns):
        mind.clock.advance(timedelta(minutes=7))
        taking = mind.turns(ScriptedChat("Yes."))
        said = TurnInput(session_id=await mind.session(f"{mind.clock.now()}"), text="What of the boat Boat7?")
        await take(replace(taking, contexts=replace(taking.contexts, frames=own)), said)


def filled(turns: TurnRunner) -> TurnRunner:
    """Their contexts hold what is far from the input too, so that something in them is of no use."""
    profiles = {name: one.model_copy(update={"near": 0.0}) for name, one in turns.contexts.profiles.items()}
    frames = {name: one.model_copy(update={"fact_share": 0.0}) for name, one in turns.contexts.frames.items()}
    return replace(turns, contexts=replace(turns.contexts, profiles=profiles, frames=frames))


async def test_what_a_reply_used_is_known_of_its_context(mind: Mind) -> None:
    assert await learning(mind).find_profile_in_use() == "evidence", "what the frames name"
    await talk_of_boats(mind, 3)
    session_id = await mind.session()
    mind.clock.advance(timedelta(minutes=7))
    await take(
        filled(mind.turns(None)), TurnInput(session_id=session_id, text="What of the boat Boat7?", frame="question")
    )
    async with mind.db.transaction(mind.agent_id) as tx:
        known = await training_data.load_cases(tx, agent_id=mind.agent_id, profile="evidence", features=["similarity"])
    assert len(known) == 3, "a reply that quotes memories used nothing"
    assert all(0 < case.is_used.sum() <= 2 for case in known), "the boat, and what was replied of it before"
    assert all(case.features[case.is_used].max() == 1.0 for case in known), "what was used was the most similar"
    await by_profile(mind, "balanced", turns=2)
    assert await learning(mind).find_profile_in_use() == "evidence", "what most answered contexts were made by"
    await by_profile(mind, "balanced", turns=2)
    assert await learning(mind).find_profile_in_use() == "balanced"
    with pytest.raises(ConflictError, match="'evidence' has usage data of 3 contexts; fitting needs 60"):
        await learning(mind).fit("evidence")
    with pytest.raises(InputError, match="'balanced' has no weights to fit"):
        await learning(mind).fit("balanced")


@pytest.mark.slow  # sixty turns
async def test_weights_are_learnt_from_replies(mind: Mind) -> None:
    await talk_of_boats(mind, 64)
    made = await learning(mind).fit("evidence")
    assert made.training_count + made.validation_count >= 60
    assert made.after.precision == pytest.approx(made.before.precision, abs=0.02)


async def test_a_fact_at_hand_has_the_label_of_other_contexts(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis", "The ferry leaves at nine")
    mind.clock.advance(timedelta(days=40))
    session_id = await mind.session()
    await take(mind.turns(ScriptedChat("It is Artemis.")), TurnInput(session_id=session_id, text="Which ferry?"))
    context = await working(mind, session_id).create_context("recent")
    assert "- 21 Nov: The ferry is called Artemis\n" in context.text.replace("Nov '26", "21 Nov")
    lines = sum(token_counter.count(line) for line in context.text.splitlines(keepends=True))
    assert lines <= context.tokens, "labels are counted"
