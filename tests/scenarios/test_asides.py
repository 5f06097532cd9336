"""What is said in a conversation when no model answers: the person's words stay, and no model is told that it spoke."""

import asyncio
from dataclasses import replace

import pytest

from newton.agent.llm.structured import StructuredLLM
from newton.agent.loop.prompt import ACKNOWLEDGMENT
from newton.agent.loop.turn import EMPTY_REPLY_MESSAGE, TurnInput
from newton.dialogue import log as logs
from newton.dialogue import sessions
from newton.heart.censors import CensorRule
from newton.memory.forgetting import forget
from newton.providers import token_counter
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import Endless, log, take
from tests.support import apart, teller
from tests.talks import calls, gives

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
    _, answer = await take(
        mind.turns(ScriptedChat(blank)), TurnInput(session_id=session_id, text="What did we decide?")
    )
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
        assert await tx.fetchval(kept) == 2
        every = [row[0] for row in await tx.fetch("select memory_id from memory.memories where kind <> 'artifact'")]
        await forget(tx, every, derived=True, reason="a test", ctx=ctx)
        assert await tx.fetchval(kept) == 0
        roles = await tx.fetch("select role from dialogue.messages order by position")
        assert [row[0] for row in roles] == ["user", "assistant", "assistant", "tool"], "its places stay"
