"""A model that fails in the background: it is named until it answers again, and the jobs report it."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import BaseModel

from newton.agent import events
from newton.agent.llm.failing_models import FailingModel, list_failing_models
from newton.agent.llm.structured import UNUSABLE_ANSWER, StructuredLLM
from newton.agent.llm.usage import SQL
from newton.agent.maintenance.extracted_facts import ExtractionResult
from newton.agent.maintenance.service import LearningReport
from newton.agent.reconciliation.reconciler import MemoryReconciler, ReconciliationResult
from newton.db.pool import Database
from newton.db.queries import WRITE_PATTERN
from newton.errors import ProviderError, TokenQuotaError
from newton.heart.shortening_prompt import ShortenedOutput
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from newton.runtime.jobs.memories import to_learning_outcome
from tests.scenarios.conftest import Mind
from tests.scenarios.reading import NOTHING
from tests.scenarios.reading import asking as asking_of
from tests.statements import watched_database
from tests.support import NOON

PRIVATE = "the words of somebody"
GOOD = json.dumps({"words": "Short."})


def asking(mind: Mind, *replies: str, per_day: int = 1_000_000) -> StructuredLLM:
    return asking_of(mind, ScriptedChat(*replies), per_day=per_day)


class FailingChat(ScriptedChat):
    """A model whose calls raise these errors in turn, None for a reply."""

    def __init__(self, *errors: ProviderError | None, reply: str = GOOD) -> None:
        super().__init__(*[reply] * len(errors))
        self.errors = list(errors)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        if error := self.errors.pop(0):
            raise error
        async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
            yield piece


class SilentChat(ScriptedChat):
    """A model that never answers."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        await asyncio.Event().wait()
        yield ""


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
    llm = replace(asking(mind), model=FailingChat(refused(), refused(), refused(), None, None, refused()))
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
        await ask(replace(asking(mind), model=FailingChat(None, reply=reply)))
        assert [one.failure for one in await read_failing(mind)] == [UNUSABLE_ANSWER], reply
        await ask(replace(asking(mind), model=FailingChat(None)))
        assert await read_failing(mind) == []
    with pytest.raises(ProviderError):
        await ask(replace(asking(mind), model=SilentChat()), seconds=0.01)
    (failing,) = await read_failing(mind)
    assert "did not answer in" in failing.failure


class DisconnectingChat(FailingChat):
    """A model whose calls end the connections to a database, and then do what they would have done."""

    def __init__(self, db: Database, *errors: ProviderError | None, reply: str = GOOD) -> None:
        super().__init__(*errors, reply=reply)
        self.db = db

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        self.db.terminate()
        async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
            yield piece


async def test_that_a_failure_cannot_be_recorded_does_not_hide_it(mind: Mind, dsn: str) -> None:
    db = await Database.open(dsn, size=1)
    llm = asking(replace(mind, db=db))
    with pytest.raises(ProviderError, match="HTTP status 500"):
        await ask(replace(llm, model=DisconnectingChat(db, refused())))
    assert await read_failing(mind) == []


async def test_a_call_that_succeeds_after_another_writes_only_its_tokens(mind: Mind, dsn: str) -> None:
    async with watched_database(dsn, mind.agent_id) as (db, sent):
        await ask(replace(asking(replace(mind, db=db)), model=FailingChat(None)))
    assert [one for one in sent if WRITE_PATTERN.search(one)] == [SQL["record_usage"].sql]


async def test_a_used_up_daily_limit_is_no_fault_of_the_model(mind: Mind) -> None:
    with pytest.raises(TokenQuotaError):
        await ask(asking(mind, GOOD, per_day=10))
    assert await read_failing(mind) == []


async def test_the_job_counts_the_conversations_that_the_model_failed(mind: Mind) -> None:
    await mind.hear("My sister Liv works at the harbour.")
    await mind.hear("Our rent was raised to 950 euros.", session="s2")
    llm = replace(asking(mind), model=FailingChat(refused(), None, reply=NOTHING))
    result = await MemoryReconciler(llm=llm).reconcile(10)
    assert result == ReconciliationResult(calls=1, failed=1)
    outcome = to_learning_outcome(LearningReport(0, ExtractionResult(), result))
    assert outcome.result is not None and outcome.result["failed"] == 1
