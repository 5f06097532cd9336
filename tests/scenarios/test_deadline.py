"""A request has one deadline: what is slow is waited for until then, and what is late is refused or named."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.cognition.assembly.sections import NOTHING_KNOWN
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest
from newton.cognition.session_context.service import INCOMPLETE
from newton.content.frames import Frame
from newton.db.pool import Database
from newton.deadline import RequestDeadline, check_timeout
from newton.errors import InputError, TimeoutExceededError
from newton.providers import token_counter
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder, ScriptedChat
from newton.runtime.tools.tool_registry import CallOptions, run_tool
from tests.scenarios.conftest import Mind, newton
from tests.scenarios.test_question_kinds import UNCLEAR
from tests.scenarios.test_sources import QUESTION, Sleeper, happen, introduce, locked

SLOW_SECONDS = 1.5  # as a source may take on a busy machine; more than each fixed deadline of single sources was
# A quarter of it is for the ranking: on a cluster, the connections are new after a request that was cut off.
PARTIAL_SECONDS = 2.0
UNSEARCHED = "Not searched for this input"
# Every table that some source reads, one source after the other.
TABLES = (
    "heart.entity_names",
    "heart.events",
    "heart.censors",
    "brain.calibration_snapshots",
    "memory.postings",
    "memory.embeddings",
    "dialogue.tasks",
    "dialogue.artifacts",
    "memory.mentioned_times",
)


class SlowEmbedder(HashEmbedder):
    """An embedder, with an encoder of questions, that takes its time."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.sleep(SLOW_SECONDS)
        return await super().embed(texts)

    async def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        return await self.embed(texts)


class QuickEmbedder(SlowEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await HashEmbedder().embed(texts)


@pytest.fixture
async def asked(mind: Mind) -> Mind:
    """A mind that has something from every source, and a first context of its session."""
    await introduce(mind)
    await happen(mind, "s1", "boat.py")
    await mind.know("The boat is repaired", "Ana Berg likes the boat")
    mind = replace(mind, embedder=QuickEmbedder())
    await build(mind)
    return mind


async def build(
    mind: Mind, deadline: RequestDeadline | None = None, contexts: ContextBuilder | None = None, **more: object
) -> Bundle:
    request = ContextBuildRequest(
        agent_id=mind.agent_id,
        input=f"{QUESTION} What was yesterday?",
        tokens=8_000,
        profile="coding",
        session_id=await mind.session("s1"),
        deadline=deadline,
    )
    return await (contexts or mind.contexts).build(replace(request, **more))  # pyright: ignore[reportArgumentType]  # named fields


@asynccontextmanager
async def slowly(dsn: str, tables: str) -> AsyncGenerator[None]:
    """Somebody else has the tables, and lets go of them after `SLOW_SECONDS`."""

    async def hold() -> None:
        async with locked(dsn, tables):
            held.set()
            await asyncio.sleep(SLOW_SECONDS)

    held = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold())
        await held.wait()
        yield


async def test_what_is_slow_changes_nothing_but_time(asked: Mind, dsn: str) -> None:
    quick = await build(asked)
    async with slowly(dsn, ", ".join(TABLES)):
        slow = await build(asked)
    embedded = await build(replace(asked, embedder=SlowEmbedder()))
    assert (slow.text, slow.missing) == (quick.text, {})
    assert (embedded.text, embedded.missing) == (quick.text, {})


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
async def test_a_slow_source_changes_nothing_but_time(asked: Mind, dsn: str, table: str) -> None:
    quick = await build(asked)
    async with slowly(dsn, table):
        slow = await build(asked)
    assert (slow.text, slow.missing) == (quick.text, {})


async def test_a_model_that_takes_its_time_to_choose_the_frame_is_waited_for(mind: Mind) -> None:
    async def choose(text: str, frames: Sequence[Frame]) -> str | None:
        await asyncio.sleep(SLOW_SECONDS)
        return "creative"

    request = ContextBuildRequest(agent_id=mind.agent_id, input=UNCLEAR, tokens=2_000)
    built = await replace(mind.contexts, tiebreak=choose).build(request)
    assert built.frame_choice.frame == "creative"


async def test_a_pool_whose_connections_are_taken_changes_nothing_but_time(asked: Mind, dsn: str) -> None:
    quick = await build(asked)
    small, taken = await Database.open(dsn, size=1), asyncio.Event()

    async def build_when_taken() -> Bundle:
        await taken.wait()
        return await build(asked, contexts=replace(asked.contexts, db=small))

    building = asyncio.create_task(build_when_taken())
    try:
        async with small.transaction(asked.agent_id):
            taken.set()
            await asyncio.sleep(SLOW_SECONDS)
            assert not building.done()
        assert (await building).text == quick.text
    finally:
        await small.close()


async def test_at_its_deadline_a_request_fails_or_says_what_was_not_searched(asked: Mind, dsn: str) -> None:
    async with locked(dsn, "memory.postings"):
        with pytest.raises(TimeoutExceededError, match=r"within 0\.3 seconds.* It waited for: "):
            await build(asked, RequestDeadline.after(0.3))
        late = await build(asked, RequestDeadline.after(PARTIAL_SECONDS, accepts_partial=True))
    assert {"words", "tool results"} <= late.missing.keys()
    assert f"- {UNSEARCHED}, because it took too long or failed: memories by words, " in late.text
    assert "The boat is repaired" in late.text, "the search by meaning had its results"
    assert token_counter.count(late.text) == late.tokens <= late.budget
    whole = await build(asked)
    assert UNSEARCHED not in whole.text and not whole.missing


async def test_what_was_not_searched_is_not_said_to_be_unknown(mind: Mind, dsn: str) -> None:
    # nothing_relevant is false, and no note says that memory has nothing
    request = ContextBuildRequest(agent_id=mind.agent_id, input="What is the ferry called?", tokens=2_000)
    known = await mind.contexts.build(request)
    assert known.has_nothing_relevant and NOTHING_KNOWN in known.text
    request = replace(request, deadline=RequestDeadline.after(0.2, accepts_partial=True))
    for budget in (2_000, 400, 60):
        async with locked(dsn, "memory.memories"):
            late = await mind.contexts.build(replace(request, tokens=budget))
        assert not late.has_nothing_relevant, budget
        assert NOTHING_KNOWN not in late.text
        assert token_counter.count(late.text) == late.tokens <= budget
        assert (UNSEARCHED in late.text) == (budget > 60)


class DamagedEmbedder(HashEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise KeyError("weights")


@pytest.mark.failing_parts("memories", "tool results", "session artifacts", "input embedding")
async def test_a_source_that_fails_is_named_and_no_error(asked: Mind) -> None:
    bundle = await build(replace(asked, embedder=DamagedEmbedder()), RequestDeadline.after())
    assert bundle.missing["memories"] == "internal error (KeyError)"
    assert f"{UNSEARCHED}, because it took too long or failed: stored memories, " in bundle.text
    assert "Acme" in bundle.text, "the entities of the input are there"


async def say(mind: Mind, model: ScriptedChat, contexts: ContextBuilder, seconds: float | None) -> TurnResult:
    runner = replace(mind.turns(model), contexts=contexts)
    deadline = None if seconds is None else RequestDeadline.after(seconds, accepts_partial=True)
    told = TurnInput(session_id=await mind.session("talk"), text="Is the boat repaired?", deadline=deadline)
    (*_, answer) = [piece async for piece in runner.run(told)]
    assert isinstance(answer, TurnResult)
    return answer


async def test_a_turn_goes_on_with_what_was_found_and_the_next_one_searches_anew(asked: Mind) -> None:
    model = ScriptedChat("I do not know.", "Yes.", "Yes, as I said.")
    contexts = asked.contexts
    late = await say(asked, model, replace(contexts, embedder=Sleeper()), 0.5)
    assert late.text == "I do not know." and late.bundle.is_incomplete
    assert any(UNSEARCHED in message.text for message in model.received[0])
    whole = await say(asked, model, contexts, None)
    assert whole.text == "Yes." and not whole.bundle.is_incomplete
    assert whole.context is not None
    assert (whole.context.method, whole.context.reason) == ("built", INCOMPLETE)
    again = await say(asked, model, contexts, None)
    assert again.context is not None and again.context.reason != INCOMPLETE


async def test_a_turn_waits_for_its_session_until_its_deadline(asked: Mind) -> None:
    model, contexts = ScriptedChat("one", "two"), asked.contexts
    first = asyncio.create_task(say(asked, model, replace(contexts, embedder=SlowEmbedder()), None))
    await asyncio.sleep(SLOW_SECONDS / 3)
    with pytest.raises(Exception, match=r"is still being answered after 0\.2 seconds"):
        await say(asked, model, contexts, 0.2)
    assert (await first).text == "one"


async def test_a_tool_call_has_the_deadline_of_its_program_and_a_prompt_goes_on(mind: Mind, dsn: str) -> None:
    services = newton(mind, HashEmbedder())
    options = CallOptions(deadline=RequestDeadline.after(0.3))
    async with locked(dsn, "memory.memories"):
        for name, field in (("context", "input"), ("recall", "query")):
            refused = await run_tool(services, name, {field: "the ferry"}, options=options)
            assert refused.is_error and refused.fields["code"] == "timeout", name
    assert not (await run_tool(services, "context", {"input": "the ferry"})).is_error


def test_a_deadline_is_shared_and_never_moves() -> None:
    whole = RequestDeadline.after(60)
    assert whole.share(0.5) is whole, "what needs a complete result has nothing to do after a late part"
    part = whole.accept_partial().share(0.5)
    assert part.remaining <= 30 < whole.remaining <= 60
    assert part.limit(100) <= 15 and part.limit(1) == 1
    assert RequestDeadline.after(0.0).remaining == 0.0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "61", None])
async def test_a_timeout_that_is_none_is_refused(seconds: object) -> None:
    with pytest.raises(InputError):
        check_timeout(seconds)


async def test_work_that_does_not_end_when_it_is_cancelled_does_not_hold_the_request() -> None:
    ended = asyncio.Event()

    async def hold() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await ended.wait()  # as the clean-up of a statement, while the database does not answer

    with pytest.raises(TimeoutExceededError):
        async with asyncio.timeout(30):
            await RequestDeadline.after(0.05).run(hold())
    ended.set()
