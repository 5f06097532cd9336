"""What the model costs: every call is recorded, and none is made that could pass the day's ceiling."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from asyncpg import Record
from pydantic import BaseModel

from newton.agent.loop.turn import TurnInput
from newton.dialogue.view import MESSAGE_TOKENS
from newton.errors import ProviderError
from newton.memory import agents
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_turn import Endless, stopped, take
from tests.support import NOON

ASKED = "Count to three for me please."


class Honest(ScriptedChat):
    """Uses all it may say, and is paid for what it heard and said."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        self.received.append(messages)
        assert max_tokens is not None
        text = token_counter.truncate("one two three " * max_tokens, max_tokens=max_tokens)
        yield text
        heard = sum(token_counter.count(message.text) + MESSAGE_TOKENS for message in messages)
        yield ChatReply(text=text, model=self.name, input_tokens=heard, output_tokens=token_counter.count(text))


async def usage(mind: Mind) -> list[Record]:
    return await mind.fetch("select * from runtime.usage order by usage_id")


def cost(prompt: Sequence[ChatMessage]) -> int:
    return sum(token_counter.count(message.text) for message in prompt)


async def test_what_the_model_reports_is_recorded(mind: Mind) -> None:
    model = ScriptedChat("One two three.")
    await take(mind.turns(model), TurnInput(session_id=await mind.session(), text=ASKED))
    (row,) = await usage(mind)
    heard = sum(len(message.text.split()) for message in model.received[0])
    assert (row["model"], row["purpose"], row["input_tokens"], row["output_tokens"]) == ("scripted", "turn", heard, 3)


class Cheap(Honest):
    """Says that it was sent nothing and said nothing."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
            yield piece if isinstance(piece, str) else replace(piece, input_tokens=0, output_tokens=0)


async def test_a_call_costs_what_was_sent_at_least_whatever_the_endpoint_reports(mind: Mind) -> None:
    # R11
    for model in (Honest("x"), Cheap("x")):
        await take(mind.turns(model), TurnInput(session_id=await mind.session(), text=ASKED))
    honest, cheap = await usage(mind)
    assert cheap["input_tokens"] >= 0.6 * honest["input_tokens"] and cheap["estimated"]
    assert cheap["output_tokens"] >= 0.6 * honest["output_tokens"] and not honest["estimated"]


@pytest.mark.parametrize("pieces", [(), ("The ferry ", "is called ")])
async def test_a_turn_that_is_stopped_costs_what_was_asked_and_heard(mind: Mind, pieces: tuple[str, ...]) -> None:
    model = Endless(*pieces)
    await stopped(mind, model, session_id=await mind.session())
    (row,) = await usage(mind)
    assert (row["model"], row["estimated"]) == ("scripted", True)
    assert (row["input_tokens"], row["output_tokens"]) == (
        cost(model.received[0]),
        token_counter.count("".join(pieces)),
    )


async def test_a_reply_nobody_listens_to_any_more_is_recorded_too(mind: Mind) -> None:
    model = Endless("The ferry ", "is called ")
    turn = mind.turns(model).run(TurnInput(session_id=await mind.session(), text=ASKED))
    assert await anext(turn) == "The ferry "
    await turn.aclose()
    (row,) = await usage(mind)
    assert (row["input_tokens"], row["output_tokens"]) == (cost(model.received[0]), token_counter.count("The ferry "))


async def test_a_model_that_cannot_be_reached_costs_nothing(mind: Mind) -> None:
    await take(mind.turns(ScriptedChat()), TurnInput(session_id=await mind.session(), text=ASKED))
    assert await usage(mind) == []


async def test_a_reply_that_breaks_off_is_recorded_once_as_reported(mind: Mind) -> None:
    class Broken(ScriptedChat):
        async def stream(
            self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
        ) -> AsyncIterator[str | ChatReply]:
            yield "It is "
            yield ChatReply(text="It is ", model=self.name, input_tokens=570, output_tokens=2, finish="interrupted")
            raise ProviderError("The model went away.", hint="Ask again.")

    await take(mind.turns(Broken()), TurnInput(session_id=await mind.session(), text=ASKED))
    (row,) = await usage(mind)
    assert (row["input_tokens"], row["output_tokens"], row["estimated"]) == (570, 2, False)


async def newborn(mind: Mind, name: str) -> Mind:
    """A mind that knows nothing, so that the same input makes the same prompt."""
    return replace(mind, agent_id=await agents.get_or_create_agent(mind.db, name, now=NOON))


async def test_the_first_call_is_made_if_it_fits_to_the_token_and_else_not(mind: Mind) -> None:
    await take(mind.turns(Honest()), TurnInput(session_id=await mind.session(), text=ASKED))
    (row,) = await usage(mind)
    whole = row["input_tokens"] + row["output_tokens"]
    for name, per_day in (("fits", whole), ("too-long", whole - 1), ("hardly", 1), ("never", 0)):
        other, model = await newborn(mind, name), Honest()
        _, answer = await take(
            other.turns(model, per_day=per_day), TurnInput(session_id=await other.session(), text=ASKED)
        )
        asked = per_day == whole
        assert (len(model.received), answer.quoted) == (int(asked), not asked)
        assert (answer.degraded is None) == asked
    said = f"This turn may use {200 + token_counter.count(ASKED)} model tokens, but only 0 of today's 0 are left"
    assert answer.degraded is not None and answer.degraded.startswith(said)
    assert "NEWTON_LLM_TOKENS_PER_DAY" in answer.degraded


async def test_no_day_costs_more_than_its_ceiling(mind: Mind) -> None:
    model, session_id = Honest(), await mind.session()
    turns = mind.turns(model, per_day=3_000)
    for n in range(8):
        await take(turns, TurnInput(session_id=session_id, text=f"{ASKED} And {n} again."))
    rows = await usage(mind)
    spent = sum(row["input_tokens"] + row["output_tokens"] for row in rows)
    assert 0 < spent <= 3_000
    assert 2 <= len(model.received) < 8
    mind.clock.advance(timedelta(days=1))
    _, answer = await take(turns, TurnInput(session_id=session_id, text=ASKED))
    assert answer.degraded is None, "the next day is another day"


async def test_a_conversation_the_model_may_not_read_is_quoted(mind: Mind) -> None:
    session_id = await mind.hear("The ferry is called Artemis.")
    text, answer = await take(
        mind.turns(Honest(), per_day=230), TurnInput(session_id=session_id, text="What is the ferry called?")
    )
    assert answer.quoted
    assert "Artemis" in text
