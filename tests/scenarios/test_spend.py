"""What the model costs and how it fails: every call is recorded, and none is made that could pass the day's ceiling."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from asyncpg import Record
from pydantic import BaseModel

from newton.agent import events
from newton.agent.llm.failing_models import FailingModel, list_failing_models
from newton.agent.llm.structured import UNUSABLE_ANSWER, StructuredLLM
from newton.agent.llm.usage import SQL
from newton.agent.loop.turn import TurnInput
from newton.agent.maintenance.extracted_facts import ExtractionResult
from newton.agent.maintenance.service import LearningReport
from newton.agent.reconciliation.reconciler import MemoryReconciler, ReconciliationResult
from newton.db.pool import Database
from newton.db.queries import WRITE_PATTERN
from newton.dialogue.view import MESSAGE_TOKENS
from newton.errors import ProviderError, TokenQuotaError
from newton.heart.reconciliation.prompt import ShortenedOutput
from newton.memory import agents
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from newton.runtime.jobs.maintenance import to_learning_outcome
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import Endless, StagedChat
from tests.scenarios.reading import NOTHING
from tests.scenarios.reading import asking as asking_of
from tests.scenarios.test_turn import stopped, take
from tests.statements import watched_database
from tests.support import NOON

ASKED = "Count to three for me please."


class Honest(ScriptedChat):
    """Uses all it may say, and is paid for what it heard and said, of which it reports a share."""

    share = 1

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        self.received.append(messages)
        assert max_tokens is not None
        text = token_counter.truncate("one two three " * max_tokens, max_tokens=max_tokens)
        yield text
        heard = sum(token_counter.count(message.text) + MESSAGE_TOKENS for message in messages)
        reported = token_counter.count(text) * self.share
        yield ChatReply(text=text, model=self.name, input_tokens=heard * self.share, output_tokens=reported)


async def usage(mind: Mind) -> list[Record]:
    return await mind.fetch("select * from runtime.usage order by usage_id")


def cost(prompt: Sequence[ChatMessage]) -> int:
    return sum(token_counter.count(message.text) for message in prompt)


async def test_what_the_model_reports_is_recorded_and_one_that_cannot_be_reached_costs_nothing(mind: Mind) -> None:
    model = ScriptedChat("One two three.")
    for _ in range(2):  # the second time it has no reply left
        await take(mind.turns(model), TurnInput(session_id=await mind.session(), text=ASKED))
    (row,) = await usage(mind)
    heard = sum(len(message.text.split()) for message in model.received[0])
    assert (row["model"], row["purpose"], row["input_tokens"], row["output_tokens"]) == ("scripted", "turn", heard, 3)


async def test_a_call_costs_what_was_sent_at_least_whatever_the_endpoint_reports(mind: Mind) -> None:
    # R11
    for share in (1, 0):
        model = Honest()
        model.share = share
        await take(mind.turns(model), TurnInput(session_id=await mind.session(), text=ASKED))
    honest, cheap = await usage(mind)
    assert cheap["input_tokens"] >= 0.6 * honest["input_tokens"] and cheap["estimated"]
    assert cheap["output_tokens"] >= 0.6 * honest["output_tokens"] and not honest["estimated"]


@pytest.mark.parametrize("said", ["", "The ferry is called "])
async def test_a_turn_that_is_stopped_costs_what_was_asked_and_heard(mind: Mind, said: str) -> None:
    model = Endless(said)
    await stopped(mind, model, session_id=await mind.session())
    (row,) = await usage(mind)
    assert (row["model"], row["estimated"]) == ("scripted", True)
    assert (row["input_tokens"], row["output_tokens"]) == (cost(model.received[0]), token_counter.count(said))


async def test_a_reply_nobody_listens_to_any_more_is_recorded_too(mind: Mind) -> None:
    model = Endless("Artemis it is called")
    turn = mind.turns(model).run(TurnInput(session_id=await mind.session(), text=ASKED))
    assert await anext(turn) == "Artemis "
    await turn.aclose()
    (row,) = await usage(mind)
    assert (row["input_tokens"], row["output_tokens"]) == (cost(model.received[0]), token_counter.count("Artemis "))


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
        said = TurnInput(session_id=await other.session(), text=ASKED)
        _, answer = await take(other.turns(model, per_day=per_day), said)
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
    said = TurnInput(session_id=session_id, text="What is the ferry called?")
    text, answer = await take(mind.turns(Honest(), per_day=230), said)
    assert answer.quoted
    assert "Artemis" in text


PRIVATE = "the words of somebody"
GOOD = json.dumps({"words": "Short."})


def asking(mind: Mind, *replies: str, per_day: int = 1_000_000) -> StructuredLLM:
    return asking_of(mind, ScriptedChat(*replies), per_day=per_day)


def failing_chat(*errors: ProviderError | None, reply: str = GOOD) -> StagedChat:
    """A model whose calls raise these errors in turn, None for a reply."""
    left = iter(errors)

    async def fail() -> None:
        if error := next(left):
            raise error

    return StagedChat(reply, before=fail)


def refused() -> ProviderError:
    summary = "http://models answered with the HTTP status 500."
    return ProviderError(f"{summary} It says: {PRIVATE}", hint="Look.").with_summary(summary)


async def ask(llm: StructuredLLM, *, purpose: str = "reconcile", seconds: float | None = None) -> None:
    await llm.complete("Shorten it.", ShortenedOutput, purpose=purpose, max_tokens=50, timeout_seconds=seconds)


async def read_failing(mind: Mind) -> list[FailingModel]:
    async with mind.db.transaction(mind.agent_id) as tx:
        return await list_failing_models(tx, agent_id=mind.agent_id)


async def read_events(mind: Mind) -> list[tuple[str, object]]:
    async with mind.db.transaction(mind.agent_id) as tx:
        found = await events.read_after(tx, 0, agent_id=mind.agent_id)
    return [(one.type, one.payload) for one in found if one.type.startswith("model.")]


async def test_a_model_that_fails_is_named_once_and_until_it_answers(
    mind: Mind, caplog: pytest.LogCaptureFixture
) -> None:
    llm = replace(asking(mind), model=failing_chat(refused(), refused(), refused(), None, None, refused()))
    for minutes in range(3):
        with pytest.raises(ProviderError):
            await ask(llm)
        mind.clock.advance(timedelta(minutes=minutes + 1))
    (failing,) = await read_failing(mind)
    assert (failing.model, failing.calls, failing.failing_since) == ("scripted", 3, NOON)
    assert failing.last_failure_at == NOON + timedelta(minutes=3)
    await ask(llm, purpose="compress")
    assert len(await read_failing(mind)) == 1, "another purpose may have another model"
    await ask(llm)
    assert await read_failing(mind) == []
    named = {"purpose": "reconcile", "model": "scripted"}
    assert await read_events(mind) == [("model.failed", named), ("model.recovered", {**named, "failed_calls": 3})]
    assert [one.msg for one in caplog.records] == ["model_failed", "model_recovered"]
    with pytest.raises(ProviderError):
        await ask(llm)
    assert [kind for kind, _ in await read_events(mind)][-1] == "model.failed", "it fails anew"
    assert PRIVATE not in str(([vars(one) for one in caplog.records], failing, await read_events(mind)))
    purpose = "the reconciliation of new lines with known items"
    said = f"scripted does not work for {purpose} since {NOON:%Y-%m-%d %H:%M} UTC: its last 3 calls"
    assert failing.description == f"{said} failed. http://models answered with the HTTP status 500."


async def test_one_that_is_silent_or_answers_nothing_usable_fails_too(mind: Mind) -> None:
    for reply in ("null", "{}", '{"words": ""}', '{"error": {"message": "busy"}}', '{"words": "'):
        await ask(replace(asking(mind), model=failing_chat(None, reply=reply)))
        assert [one.failure for one in await read_failing(mind)] == [UNUSABLE_ANSWER], reply
        await ask(replace(asking(mind), model=failing_chat(None)))
        assert await read_failing(mind) == []
    with pytest.raises(ProviderError):
        await ask(replace(asking(mind), model=Endless()), seconds=0.01)
    (failing,) = await read_failing(mind)
    assert "did not answer in" in failing.failure


async def test_that_a_failure_cannot_be_recorded_does_not_hide_it(mind: Mind, dsn: str) -> None:
    db = await Database.open(dsn, size=1)
    llm = asking(replace(mind, db=db))

    async def disconnect() -> None:
        db.terminate()
        raise refused()

    with pytest.raises(ProviderError, match="HTTP status 500"):
        await ask(replace(llm, model=StagedChat(GOOD, before=disconnect)))
    assert await read_failing(mind) == []


async def test_a_call_that_succeeds_after_another_writes_only_its_tokens(mind: Mind, dsn: str) -> None:
    async with watched_database(dsn, mind.agent_id) as (db, sent):
        await ask(replace(asking(replace(mind, db=db)), model=failing_chat(None)))
    assert [one for one in sent if WRITE_PATTERN.search(one)] == [SQL["record_usage"].sql]


async def test_a_used_up_daily_limit_is_no_fault_of_the_model(mind: Mind) -> None:
    with pytest.raises(TokenQuotaError):
        await ask(asking(mind, GOOD, per_day=10))
    assert await read_failing(mind) == []


async def test_the_job_counts_the_conversations_that_the_model_failed(mind: Mind) -> None:
    await mind.hear("My sister Liv works at the harbour.")
    await mind.hear("Our rent was raised to 950 euros.", session="s2")
    llm = replace(asking(mind), model=failing_chat(refused(), None, reply=NOTHING))
    result = await MemoryReconciler(llm=llm).reconcile(10)
    assert result == ReconciliationResult(calls=1, failed=1)
    outcome = to_learning_outcome(LearningReport(0, ExtractionResult(), result))
    assert outcome.result is not None and outcome.result["failed"] == 1
