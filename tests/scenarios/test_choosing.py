"""The frame of an input in a whole Newton: behind its polite opening, and with a model to break a tie."""

from collections.abc import Sequence
from dataclasses import replace

from newton.agent.llm.structured import StructuredLLM
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.scenarios.conftest import Mind

UNCLEAR, CLEAR = "zzz <input>", "Should we use tabs or spaces?"


class Listening(HashEmbedder):
    """Keeps the texts it was given."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.heard += texts
        return await super().embed(texts)


def asking(mind: Mind, model: ScriptedChat, per_day: int = 10_000) -> ContextBuilder:
    asker = StructuredLLM(
        model=model,
        tokens_per_day=per_day,
        scope=mind.scope,
    )
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
