"""A turn of the bundled agent."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from newton.agent.turn import Answer, Said, Turns, within
from newton.db.pool import in_unit_of_work
from newton.dialogue.lines import Line, Placed
from newton.errors import InputError
from newton.ids import new_id
from newton.providers.chat import ChatMessage, Reply
from newton.providers.offline import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.support import NOON


async def take(turns: Turns, said: Said) -> tuple[str, Answer]:
    pieces = [piece async for piece in turns.take(said)]
    assert isinstance(pieces[-1], Answer)
    return "".join(p for p in pieces if isinstance(p, str)), pieces[-1]


async def log(mind: Mind, session_id: object) -> list[tuple[str, str]]:
    async with mind.db.work(mind.agent_id) as tx:
        rows = await tx.fetch(
            "select role, content from dialogue.messages where session_id = $1 order by position", session_id
        )
    return [(row["role"], row["content"]) for row in rows]


async def test_a_turn_gives_the_model_context_history_and_input_and_keeps_all_of_it(mind: Mind) -> None:
    # S002-1: the context is the system message
    await mind.know("The ferry is called Artemis.")
    model = ScriptedChat("It is Artemis.", "At nine.")
    turns, session_id = mind.turns(model), await mind.session()
    text, answer = await take(turns, Said(session_id=session_id, text="What is the ferry called?"))
    await take(turns, Said(session_id=session_id, text="When does it leave?"))
    assert (text, answer.text, answer.degraded) == ("It is Artemis.", "It is Artemis.", None)
    assert "- The ferry is called Artemis.\n" in model.heard[0][0].text
    assert [(m.role, m.text) for m in model.heard[1][1:]] == [
        ("user", "What is the ferry called?"),
        ("assistant", "It is Artemis."),
        ("user", "When does it leave?"),
    ]
    assert await log(mind, session_id) == [
        ("user", "What is the ferry called?"),
        ("assistant", "It is Artemis."),
        ("user", "When does it leave?"),
        ("assistant", "At nine."),
    ]


async def test_no_unit_of_work_is_open_while_the_model_thinks(mind: Mind) -> None:
    class Watchful(ScriptedChat):
        async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
            assert not in_unit_of_work()
            async for piece in super().stream(messages, max_tokens=max_tokens):
                assert not in_unit_of_work()
                yield piece

    text, _ = await take(mind.turns(Watchful("Fine.")), Said(session_id=await mind.session(), text="How are you?"))
    assert text == "Fine."


async def test_without_a_model_it_quotes_and_the_quote_is_not_learnt_again(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    session_id = await mind.session()
    text, answer = await take(mind.turns(None), Said(session_id=session_id, text="What is the ferry called?"))
    assert text == "From memory:\n- The ferry is called Artemis."
    assert answer.degraded is not None and "OPENAI_API_KEY" in answer.degraded
    async with mind.db.work(mind.agent_id) as tx:
        learnt = await tx.fetch("select summary from memory.memories where kind = 'exchange'")
    assert [row["summary"] for row in learnt] == ["[2026-11-21] User: What is the ferry called?"]
    assert (await log(mind, session_id))[-1] == ("assistant", text)


async def test_an_empty_memory_says_so(mind: Mind) -> None:
    text, _ = await take(mind.turns(None), Said(session_id=await mind.session(), text="What did we decide?"))
    assert text == "There is nothing about this in memory yet."


async def test_a_failing_model_degrades_to_quoting(mind: Mind) -> None:
    await mind.know("The ferry is called Artemis.")
    text, answer = await take(
        mind.turns(ScriptedChat()), Said(session_id=await mind.session(), text="What is the ferry called?")
    )
    assert "Artemis" in text
    assert answer.degraded == "The scripted model has nothing left to say. Give it more lines."


async def test_usage_is_recorded_and_the_daily_ceiling_holds(mind: Mind) -> None:
    model = ScriptedChat("One two three.", "Never said.")
    turns, session_id = mind.turns(model, per_day=10), await mind.session()
    await take(turns, Said(session_id=session_id, text="Count to three for me please."))
    _, second = await take(turns, Said(session_id=session_id, text="And on?"))
    assert second.degraded is not None and "NEWTON_LLM_TOKENS_PER_DAY" in second.degraded
    assert len(model.heard) == 1
    async with mind.db.work(mind.agent_id) as tx:
        row = await tx.fetchrow("select model, output_tokens from runtime.usage")
    assert row is not None and (row["model"], row["output_tokens"]) == ("scripted", 3)


async def test_a_turn_stopped_halfway_keeps_what_was_said(mind: Mind) -> None:
    heard = asyncio.Event()

    class Slow(ScriptedChat):
        async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
            yield "The ferry "
            heard.set()
            await asyncio.Event().wait()

    session_id = await mind.session()
    turn = asyncio.create_task(take(mind.turns(Slow()), Said(session_id=session_id, text="Which ferry?")))
    async with asyncio.timeout(10):
        await heard.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert await log(mind, session_id) == [("user", "Which ferry?"), ("assistant", "The ferry")]


async def test_an_empty_message_is_refused_and_leaves_nothing(mind: Mind) -> None:
    session_id = await mind.session()
    with pytest.raises(InputError, match="empty"):
        await take(mind.turns(None), Said(session_id=session_id, text="  \n"))
    assert await log(mind, session_id) == []


def test_within_keeps_the_end() -> None:
    session_id = new_id()
    lines = [
        Placed(session_id=session_id, position=n, tokens=10, line=Line(role="user", content=str(n), said_at=NOON))
        for n in range(5)
    ]
    assert [p.position for p in within(lines, tokens=25)] == [3, 4]
