"""An error in any part of a turn costs this part: the turn has a reply, or the reason is stored in its place."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from pydantic import BaseModel

from newton.agent.loop.turn import TurnRunner
from newton.agent.loop.turn_types import CallerOptions, QuoteObstacle, TurnInput, TurnResult
from newton.errors import DatabaseError, NewtonError, ProviderError
from newton.fault_isolation import count_failures
from newton.heart.censors import CensorRule
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.planting import PlantedParts
from tests.scenarios.conftest import Mind, newton


class BrokenChat(ScriptedChat):
    """Says its texts, and then raises an error: one that no provider declares, unless another is given."""

    def __init__(self, *texts: str, error: Exception | None = None) -> None:
        super().__init__()
        self._texts, self._error = texts, error or RuntimeError("a defect")

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        for text in self._texts:
            yield text
        raise self._error


async def take(turns: TurnRunner, turn_input: TurnInput) -> TurnResult:
    *pieces, result = [piece async for piece in turns.run(turn_input)]
    assert isinstance(result, TurnResult) and "".join(map(str, pieces)) == result.text
    return result


async def messages(mind: Mind, session_id: UUID) -> list[tuple[str, str, bool]]:
    rows = await mind.fetch(
        "select role, content, is_notice from dialogue.messages where session_id = $1 order by position", session_id
    )
    return [(row["role"], row["content"], row["is_notice"]) for row in rows]


@pytest.mark.parametrize(
    "part",
    [
        *("rules of the user", "compaction", "trust of messages", "context", "working memory", "compaction ahead"),
        *("record of the turn", "prompt"),
    ],
)
async def test_a_part_that_fails_costs_only_itself(mind: Mind, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    session_id, turns = await mind.session(), mind.turns(ScriptedChat("Hello.", "It is Artemis."))
    await take(turns, TurnInput(session_id=session_id, text="Hello"))
    PlantedParts(monkeypatch, frozenset({part})).install()
    result = await take(turns, TurnInput(session_id=session_id, text="From now on answer briefly. Which ferry?"))
    assert result.missing == {part: "internal error (KeyError)"}
    if part == "prompt":
        assert result.degraded == "The request to the model could not be prepared: internal error (KeyError)."
    else:
        assert (result.text, result.degraded) == ("It is Artemis.", None)
    assert (await messages(mind, session_id))[-1] == ("assistant", result.text, part == "prompt")


async def test_a_reply_that_cannot_be_stored_is_told_and_the_reason_is_stored(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = await mind.session()
    PlantedParts(monkeypatch, frozenset({"record of the turn", "stored reply"})).install()
    result = await take(mind.turns(ScriptedChat("It is Artemis.")), TurnInput(session_id=session_id, text="Which?"))
    assert result.text == "It is Artemis." and set(result.missing) == {"record of the turn", "stored reply"}
    assert await messages(mind, session_id) == [
        ("user", "Which?", False),
        ("assistant", "The reply could not be stored: internal error (KeyError).", True),
    ]


async def test_an_input_that_cannot_be_checked_is_refused_if_there_are_censors(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id, model = await mind.session(), ScriptedChat("It is Artemis.")
    PlantedParts(monkeypatch, frozenset({"censors"})).install()
    free = await take(mind.turns(model), TurnInput(session_id=session_id, text="Which ferry?"))
    assert free.text == "It is Artemis." and free.missing == {"censors": "internal error (KeyError)"}
    await mind.censors.add(CensorRule(trigger="sink", reason="it floats", action="block"))
    refused = await take(mind.turns(model), TurnInput(session_id=session_id, text="Which ferry?"))
    assert "could not be compared with the censors" in refused.text and refused.forbidden
    assert len(model.received) == 1, "no model was called"


@pytest.mark.failing_parts("reply")
@pytest.mark.parametrize("said", [(), ("It is ",)])
async def test_a_model_client_with_a_defect_costs_the_rest_of_the_reply(mind: Mind, said: tuple[str, ...]) -> None:
    await mind.know("The ferry is called Artemis.")
    session_id = await mind.session()
    result = await take(mind.turns(BrokenChat(*said)), TurnInput(session_id=session_id, text="Which ferry?"))
    assert result.degraded == "The reply of the model ended early: internal error (RuntimeError)." and result.failed
    assert result.text == "It is " if said else "Artemis" in result.text
    assert [role for role, _, _ in await messages(mind, session_id)] == ["user", "assistant"]


@pytest.mark.parametrize("accepts_quotes", [True, False])
async def test_an_api_caller_gets_quotes_or_a_sentence_unless_it_needs_another_format(
    mind: Mind, monkeypatch: pytest.MonkeyPatch, *, accepts_quotes: bool
) -> None:
    obstacle = None if accepts_quotes else QuoteObstacle("`n` asks for two replies")
    session_id, options = await mind.session(), CallerOptions(quote_obstacle=obstacle)
    turn_input = TurnInput(session_id=session_id, text="Which ferry?", caller_options=options)
    PlantedParts(monkeypatch, frozenset({"prompt"})).install()
    turns = mind.turns(ScriptedChat("It is Artemis."))
    if accepts_quotes:
        assert (await take(turns, turn_input)).text.startswith("The request to the model could not be prepared")
    else:
        with pytest.raises(NewtonError, match="could not be prepared"):
            await take(turns, turn_input)
    assert [role for role, _, _ in await messages(mind, session_id)] == ["user", "assistant"]
    assert await mind.fetchval("select count(*) from cognition.turns") == 0, "a failure quotes no memory"


async def test_a_failure_of_the_model_is_stored_once_and_a_retry_answers_in_the_same_session(mind: Mind) -> None:
    session_id, options = await mind.session(), CallerOptions()
    failing = mind.turns(BrokenChat(error=ProviderError("The server is down.", hint="Wait.")))
    asked = TurnInput(session_id=session_id, text="Which ferry?", ref="chat:1", caller_options=options)
    for again in (False, True, True):
        with pytest.raises(ProviderError):
            await take(failing, replace(asked, already_stored=again))
    stored = await messages(mind, session_id)
    assert stored == [("user", "Which ferry?", False), ("assistant", "The server is down.", True)]
    answered = await take(mind.turns(ScriptedChat("Artemis.")), replace(asked, already_stored=True))
    assert answered.text == "Artemis." and (await messages(mind, session_id))[-1][1] == "Artemis."


@pytest.mark.failing_parts("turn")
async def test_a_defect_after_the_reply_does_not_contradict_it(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise ValueError("a defect")

    session_id = await mind.session()
    monkeypatch.setattr("newton.agent.loop.turn.count_redactions", fail)
    result = await take(mind.turns(ScriptedChat("Artemis.")), TurnInput(session_id=session_id, text="Which ferry?"))
    assert (result.text, result.failed, result.missing) == ("Artemis.", False, {"turn": "internal error (ValueError)"})
    assert [text for _, text, _ in await messages(mind, session_id)] == ["Which ferry?", "Artemis."]


async def test_a_database_that_fails_after_the_reply_costs_only_the_working_memory(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = DatabaseError("Gone.", hint="Wait.")
    PlantedParts(monkeypatch, frozenset({"working memory"}), error=gone).install()
    turn_input = TurnInput(session_id=await mind.session(), text="Which ferry?", caller_options=CallerOptions())
    result = await take(mind.turns(ScriptedChat("Artemis.")), turn_input)
    assert (result.text, result.missing) == ("Artemis.", {"working memory": "Gone."})


@pytest.mark.failing_parts("turn")
@pytest.mark.parametrize("error", [ValueError("a defect"), DatabaseError("Gone.", hint="Wait.")])
async def test_an_error_outside_of_all_parts_leaves_its_reason(
    mind: Mind, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    session_id = await mind.session()
    monkeypatch.setattr("newton.agent.loop.turn.count_redactions", fail)
    monkeypatch.setattr("newton.agent.loop.turn._to_reply_record", fail)
    turn_input = TurnInput(session_id=session_id, text="Which ferry?")
    if isinstance(error, DatabaseError):
        with pytest.raises(DatabaseError):
            await take(mind.turns(ScriptedChat("Artemis.")), turn_input)
    else:
        pieces = [piece async for piece in mind.turns(ScriptedChat("Artemis.")).run(turn_input)]
        assert isinstance(pieces[-1], TurnResult) and "was not answered" in pieces[-1].text
    user, notice = await messages(mind, session_id)
    assert user[:2] == ("user", "Which ferry?") and notice[2] and notice[1] != ""


async def test_a_database_that_fails_in_the_work_after_a_turn_is_counted(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, before = DatabaseError("Gone.", hint="Wait."), count_failures()
    PlantedParts(monkeypatch, frozenset({"embeddings"}), error=gone).install()
    assert not await newton(mind, HashEmbedder()).process_written("test")
    assert count_failures() - before == {("processing of new memories", gone.code): 1}
