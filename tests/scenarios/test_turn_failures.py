"""A turn without the answer of a model, or with an error in one of its parts: what was said stays, and is said why."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from newton.agent.llm.structured import StructuredLLM
from newton.agent.loop.prompt import ACKNOWLEDGMENT
from newton.agent.loop.turn import EMPTY_REPLY_MESSAGE, TurnRunner
from newton.agent.loop.turn_types import CallerOptions, QuoteObstacle, TurnInput, TurnResult
from newton.dialogue import log as logs
from newton.dialogue import sessions
from newton.errors import DatabaseError, NewtonError, ProviderError
from newton.fault_isolation import count_failures
from newton.heart.censors import CensorRule
from newton.providers import token_counter
from newton.providers.fakes import HashEmbedder, ScriptedChat
from tests.planting import PlantedParts
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.handy import BrokenChat, Endless
from tests.scenarios.test_turn import log, take
from tests.support import apart, teller
from tests.talks import calls, gives


async def taken(turns: TurnRunner, turn_input: TurnInput) -> TurnResult:
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
    await taken(turns, TurnInput(session_id=session_id, text="Hello"))
    PlantedParts(monkeypatch, frozenset({part})).install()
    result = await taken(turns, TurnInput(session_id=session_id, text="From now on answer briefly. Which ferry?"))
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
    result = await taken(mind.turns(ScriptedChat("It is Artemis.")), TurnInput(session_id=session_id, text="Which?"))
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
    free = await taken(mind.turns(model), TurnInput(session_id=session_id, text="Which ferry?"))
    assert free.text == "It is Artemis." and free.missing == {"censors": "internal error (KeyError)"}
    await mind.censors.add(CensorRule(trigger="sink", reason="it floats", action="block"))
    refused = await taken(mind.turns(model), TurnInput(session_id=session_id, text="Which ferry?"))
    assert "could not be compared with the censors" in refused.text and refused.forbidden
    assert len(model.received) == 1, "no model was called"


@pytest.mark.failing_parts("reply")
@pytest.mark.parametrize("said", ["", "It is "])
async def test_a_model_client_with_a_defect_costs_the_rest_of_the_reply(mind: Mind, said: str) -> None:
    await mind.know("The ferry is called Artemis.")
    session_id = await mind.session()
    result = await taken(mind.turns(BrokenChat(said)), TurnInput(session_id=session_id, text="Which ferry?"))
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
        assert (await taken(turns, turn_input)).text.startswith("The request to the model could not be prepared")
    else:
        with pytest.raises(NewtonError, match="could not be prepared"):
            await taken(turns, turn_input)
    assert [role for role, _, _ in await messages(mind, session_id)] == ["user", "assistant"]
    assert await mind.fetchval("select count(*) from cognition.turns") == 0, "a failure quotes no memory"


async def test_a_failure_of_the_model_is_stored_once_and_a_retry_answers_in_the_same_session(mind: Mind) -> None:
    session_id, options = await mind.session(), CallerOptions()
    failing = mind.turns(BrokenChat(error=ProviderError("The server is down.", hint="Wait.")))
    asked = TurnInput(session_id=session_id, text="Which ferry?", ref="chat:1", caller_options=options)
    for again in (False, True, True):
        with pytest.raises(ProviderError):
            await taken(failing, replace(asked, already_stored=again))
    stored = await messages(mind, session_id)
    assert stored == [("user", "Which ferry?", False), ("assistant", "The server is down.", True)]
    answered = await taken(mind.turns(ScriptedChat("Artemis.")), replace(asked, already_stored=True))
    assert answered.text == "Artemis." and (await messages(mind, session_id))[-1][1] == "Artemis."


@pytest.mark.failing_parts("turn")
async def test_a_defect_after_the_reply_does_not_contradict_it(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise ValueError("a defect")

    session_id = await mind.session()
    monkeypatch.setattr("newton.agent.loop.turn.count_redactions", fail)
    result = await taken(mind.turns(ScriptedChat("Artemis.")), TurnInput(session_id=session_id, text="Which ferry?"))
    assert (result.text, result.failed, result.missing) == ("Artemis.", False, {"turn": "internal error (ValueError)"})
    assert [text for _, text, _ in await messages(mind, session_id)] == ["Which ferry?", "Artemis."]


async def test_a_database_that_fails_after_the_reply_costs_only_the_working_memory(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = DatabaseError("Gone.", hint="Wait.")
    PlantedParts(monkeypatch, frozenset({"working memory"}), error=gone).install()
    turn_input = TurnInput(session_id=await mind.session(), text="Which ferry?", caller_options=CallerOptions())
    result = await taken(mind.turns(ScriptedChat("Artemis.")), turn_input)
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
            await taken(mind.turns(ScriptedChat("Artemis.")), turn_input)
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


NOTHING_YET = "Memory has nothing about this yet."


async def test_an_input_is_kept_when_the_turn_is_stopped_while_the_conversation_is_made_shorter(mind: Mind) -> None:
    session_id = await mind.hear(*(f"Question {n}. {'and so on ' * 60}" for n in range(8)))
    model = Endless()
    asking = StructuredLLM(
        model=model,
        tokens_per_day=10**6,
        scope=mind.scope,
    )
    turns = replace(mind.turns(ScriptedChat("Never.")), compaction=mind.compacting("threshold", model=asking))
    turn = asyncio.create_task(take(turns, TurnInput(session_id=session_id, text="Which ferry?")))
    async with asyncio.timeout(60):
        await model.thinking.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert (await log(mind, session_id))[-1] == ("user", "Which ferry?")


async def test_an_input_that_is_kept_already_is_not_found_for_itself(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    for model in (None, ScriptedChat("Yes.")):
        said = TurnInput(session_id=await mind.session(f"of {model}"), text="The ferry is late because of the storm")
        _, answer = await take(mind.turns(model), said)
        found = [c for c in answer.bundle.candidates if c.scored.found.thread_id == said.session_id]
        assert found == []
        if model:
            assert apart(model.received[0])[1] == [("user", said.text)], "and it is sent once"


async def test_what_newton_says_because_a_model_failed_is_not_sent_as_its_words(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    session_id, model = await mind.session(), ScriptedChat()
    for text in ("What is the ferry called?", "Who is the captain of Zeppelin nine?"):
        _, failed = await take(mind.turns(model), TurnInput(session_id=session_id, text=text))
        assert failed.failed and failed.quoted
    model = ScriptedChat("It is Artemis.", "At nine.")
    await take(mind.turns(model), TurnInput(session_id=session_id, text="Once more?"))
    await take(mind.turns(model), TurnInput(session_id=session_id, text="When?"))
    spoken = [(role, text) for role, text in apart(model.received[1])[1] if text != ACKNOWLEDGMENT]
    asked = "\n\n".join(text for role, text in spoken[:-2] if role == "user")
    assert [("user", asked), *spoken[-2:]] == [
        ("user", "What is the ferry called?\n\nWho is the captain of Zeppelin nine?\n\nOnce more?"),
        ("assistant", "It is Artemis."),
        ("user", "When?"),
    ]
    assert (await log(mind, session_id))[1] == ("assistant", "From memory:\n- The ferry is called Artemis."), "kept"


async def test_what_a_censor_said_is_not_sent_either_and_nothing_outside_failed(mind: Mind) -> None:
    await mind.censors.add(CensorRule(trigger="push to main", reason="releases go through review", action="block"))
    session_id, model = await mind.session(), ScriptedChat("Fine.")
    _, answer = await take(mind.turns(model), TurnInput(session_id=session_id, text="Please push to main."))
    assert not answer.failed
    _, answer = await take(mind.turns(model), TurnInput(session_id=session_id, text="How are you?"))
    assert not answer.failed
    assert {m.text for m in model.received[0] if m.role == "assistant"} <= {ACKNOWLEDGMENT}


@pytest.mark.parametrize("blank", [" ", "\n \n", "\0"])
async def test_a_reply_without_a_word_is_none(mind: Mind, blank: str) -> None:
    session_id = await mind.session()
    decided = TurnInput(session_id=session_id, text="What did we decide?")
    _, answer = await take(mind.turns(ScriptedChat(blank)), decided)
    assert (answer.text, answer.caveat) == (NOTHING_YET, f"{EMPTY_REPLY_MESSAGE} This answer only quotes memory.")
    assert answer.failed
    async with mind.db.transaction(mind.agent_id) as tx:
        last = (
            await logs.load_messages(
                tx, [logs.MessageRange(0, logs.MAX_POSITION)], agent_id=mind.agent_id, session_id=session_id
            )
        )[-1]
    assert (last.message.is_notice, last.message.content) == (True, NOTHING_YET)


async def test_no_word_of_what_is_forgotten_stays_in_a_call_or_in_a_quote(mind: Mind) -> None:
    # reliability S8: what stood in the arguments of a call, and what Newton quoted because no model answered
    await mind.know("The safe code of the harbour office is 4711-XK.")
    session_id = await mind.session()
    await take(mind.turns(None), TurnInput(session_id=session_id, text="What is the safe code of the harbour office?"))
    ctx = teller(mind.agent_id, count_tokens=token_counter.count)
    calling = [calls("a", arguments='{"to": "code 4711-XK"}'), gives("a", "ok")]
    kept = "select count(*) from dialogue.messages where content || coalesce(tool_calls::text, '') like '%4711-XK%'"
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(tx, calling, session_id=session_id, ctx=ctx)
    assert await mind.fetchval(kept) == 2
    every = await mind.fetch("select memory_id from memory.memories where kind <> 'artifact'")
    await mind.forget(*(row[0] for row in every), derived=True)
    assert await mind.fetchval(kept) == 0
    roles = await mind.fetch("select role from dialogue.messages order by position")
    assert [row[0] for row in roles] == ["user", "assistant", "assistant", "tool"], "its places stay"
