"""Compaction ahead of need, in the background, and what a model may do for it: few calls and few seconds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest
from pydantic import BaseModel

from newton.agent.background_runs import BackgroundCompactions
from newton.agent.compaction import service
from newton.agent.compaction.block_summarizer import FALLBACK_NOTICE, MAX_CALLS, CallBudget
from newton.agent.compaction.service import LEASE_SECONDS
from newton.dialogue import sessions
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.progress_events import CompactionEvent, CompactionFailed
from newton.dialogue.view import count_view_tokens
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.context_windows import ContextWindow
from newton.providers.fakes import ScriptedChat
from newton.providers.token_counter import count
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import StagedChat
from tests.scenarios.talking import Talking
from tests.scenarios.test_summarizing import GOOD, asking, turns
from tests.support import teller, until
from tests.talks import calls, gives, says, turn

NEVER = 1_000_000.0  # seconds


async def prepared(mind: Mind, *, idle_seconds: float = NEVER, **chosen: object) -> tuple[Talking, int]:
    """A session of ten turns, and its tokens."""
    background = BackgroundCompactions(idle_seconds=idle_seconds)
    talking = Talking(mind, "threshold(recent=1)", chosen={"background": background, **chosen})
    await talking.says(*(line for lines in turns(10) for line in lines))
    return talking, (await talking.doors.get_view("s1")).tokens


async def made(talking: Talking) -> bool:
    return bool(await talking.doors.list_entries("s1"))


@pytest.mark.parametrize(
    ("share", "idle", "is_compacted"),
    [(0.72, False, True), (0.64, False, False), (0.64, True, True), (0.56, True, False)],
)
async def test_a_session_near_its_limit_is_compacted_at_once_and_an_idle_one_earlier(
    mind: Mind, share: float, idle: bool, is_compacted: bool
) -> None:
    # S003-11: the trigger is 0.8 of the limit; 85 % of it is 0.68, 75 % is 0.6
    talking, tokens = await prepared(mind, idle_seconds=0.0 if idle else NEVER)
    limit, session_id = int(tokens / share), await mind.session()
    view = await talking.compacting.load_view(session_id, max_tokens=limit)
    assert count_view_tokens(view) == tokens, "not due yet"
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=limit)
    await talking.compacting.background.finish(seconds=60)
    if idle and is_compacted:

        async def compacted() -> bool:
            return await made(talking)

        await until(compacted)
    elif idle:
        for _ in range(20):
            await asyncio.sleep(0)
        await talking.compacting.background.finish(seconds=60)
    assert await made(talking) == is_compacted
    await talking.compacting.background.cancel()


async def test_a_turn_that_comes_before_a_session_is_idle_puts_it_off(mind: Mind) -> None:
    talking, tokens = await prepared(mind, idle_seconds=0.2)
    limit, session_id = int(tokens / 0.64), await mind.session()
    view = await talking.compacting.load_view(session_id, max_tokens=limit)
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=limit)
    await talking.compacting.load_view(session_id, max_tokens=limit)
    await asyncio.sleep(0.4)
    await talking.compacting.background.finish(seconds=60)
    assert not await made(talking)


async def test_a_turn_gets_a_cut_made_without_the_model_and_the_summary_follows(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S003-19
    monkeypatch.setattr(service, "TURN_SECONDS", 0.2)
    model, _ = asking(mind)
    gate = asyncio.Event()
    talking, tokens = await prepared(mind, model=replace(model, model=StagedChat(GOOD, before=gate.wait)))
    session_id = await mind.session()
    view = await talking.compacting.load_view(session_id, max_tokens=tokens)
    assert not gate.is_set() and count_view_tokens(view) < 0.8 * tokens, "it is cut, and nobody has answered"
    assert view[0].text.startswith("[SUMMARIZED]") and not await made(talking)
    second = asyncio.create_task(talking.compacting.load_view(session_id, max_tokens=tokens))
    assert count_view_tokens(await second) == count_view_tokens(view), "the next turn waits for nothing"
    gate.set()
    await talking.compacting.background.finish(seconds=60)
    assert "scripted" in {one.entry.model for one in await talking.doors.list_entries("s1")}
    view = await talking.compacting.load_view(session_id, max_tokens=tokens)
    assert "I went with codec-9" in view[0].text


async def test_two_turns_at_once_compact_a_session_once(mind: Mind) -> None:
    model, scripted = asking(mind, *[GOOD] * 20)
    talking, tokens = await prepared(mind, model=model)
    session_id = await mind.session()
    views = await asyncio.gather(*(talking.compacting.load_view(session_id, max_tokens=tokens) for _ in range(2)))
    entries = await talking.doors.list_entries("s1")
    assert [one.text for one in views[0]] == [one.text for one in views[1]]
    assert len(scripted.received) == [one.entry.model for one in entries].count("scripted")


async def test_what_runs_at_the_end_of_a_process_is_waited_for_or_cancelled(mind: Mind) -> None:
    model, _ = asking(mind)
    gate = asyncio.Event()
    talking, tokens = await prepared(mind, model=replace(model, model=StagedChat(GOOD, before=gate.wait)))
    background, session_id = talking.compacting.background, await mind.session()
    view = (await talking.doors.get_view("s1")).view
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=tokens)
    await background.finish(seconds=0.0)
    await background.cancel()
    held = await mind.fetchval("select count(*) from dialogue.leases where expires_at > now()")
    assert held == 0, "the session is free for the next process"
    gate.set()
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=tokens)
    await background.finish(seconds=60)
    assert await made(talking)
    await background.cancel()


async def imported(mind: Mind, many: int) -> UUID:
    session_id = await mind.session()
    async with mind.db.transaction(mind.agent_id) as tx:
        lines = [line for n in range(many) for line in turn(n)]
        await sessions.append(tx, lines, session_id=session_id, ctx=teller(mind.agent_id))
    return session_id


@pytest.mark.slow
async def test_before_a_reply_a_model_is_asked_few_times_however_long_the_session_is(mind: Mind) -> None:
    # S003-19: seconds at most
    session_id = await imported(mind, 100)
    model, scripted = asking(mind, *[GOOD] * 500, per_day=10**9)
    told: list[CompactionEvent] = []
    view = await replace(mind.compacting(), model=model, on_event=told.append).compact(session_id, max_tokens=20_000)
    assert len(scripted.received) == MAX_CALLS
    assert count_view_tokens(view) < 0.5 * 20_000 and not [
        event for event in told if isinstance(event, CompactionFailed)
    ]
    async with mind.db.transaction(mind.agent_id) as tx:
        made = [one.entry for one in await entry_store.list_entries(tx, agent_id=mind.agent_id, session_id=session_id)]
    assert len(made) > 80 and [entry.model for entry in made].count("scripted") == MAX_CALLS


class Slow(ScriptedChat):
    """Answers so many times, and then thinks for ever."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.most: list[int | None] = []
        self.many = len(answers)
        self.thinks = asyncio.Event()

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        self.most.append(max_tokens)
        if len(self.most) <= self.many:
            async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
                yield piece
        else:
            yield "{"
            self.thinks.set()
            await asyncio.Event().wait()


class Narrow(Slow):
    """A model that knows its window."""

    known_window = ContextWindow(4_000, "server")

    async def find_window(self) -> ContextWindow:
        return self.known_window

    async def learn_window(self, tokens: int, *, is_guess: bool) -> None:
        raise NotImplementedError


async def test_what_a_model_was_paid_for_is_kept_when_nobody_waits_for_the_rest(mind: Mind) -> None:
    session_id = await imported(mind, 30)
    ask, _ = asking(mind)
    slow = Slow(GOOD, GOOD)
    compacting = replace(mind.compacting("threshold"), model=replace(ask, model=slow))
    running = asyncio.create_task(compacting.compact(session_id, max_tokens=4_000))
    async with asyncio.timeout(60):
        await slow.thinks.wait()
    async with mind.db.transaction(mind.agent_id) as tx:
        held = await tx.fetchval("select extract(epoch from expires_at - now()) from dialogue.leases")
        await tx.execute("update dialogue.leases set expires_at = now() + interval '1 second'")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert held > 0.9 * LEASE_SECONDS
    async with mind.db.transaction(mind.agent_id) as tx:
        made = [one.entry for one in await entry_store.list_entries(tx, agent_id=mind.agent_id, session_id=session_id)]
        spent = await tx.fetch("select output_tokens from runtime.usage")
    assert [entry.model for entry in made].count("scripted") == 2
    assert len(spent) == 3 and 1 in [row["output_tokens"] for row in spent], "what was asked in vain is paid for too"
    again = replace(compacting, model=None)
    before = count_view_tokens((await Talking(mind).doors.get_view("s1")).view)
    assert count_view_tokens(await again.compact(session_id, max_tokens=4_000)) < 0.8 * before, (
        "the rest is told the next time"
    )


async def test_the_right_is_held_anew_with_each_account_that_is_kept(mind: Mind) -> None:
    session_id = await imported(mind, 30)
    left: list[float] = []

    async def watch() -> None:
        left.append(await mind.fetchval("select extract(epoch from expires_at - now()) from dialogue.leases"))
        await mind.execute("update dialogue.leases set expires_at = now() + interval '9 seconds'")

    ask, _ = asking(mind)
    model = replace(ask, model=StagedChat(GOOD, before=watch))
    await replace(mind.compacting("threshold"), model=model).compact(session_id, max_tokens=4_000)
    assert len(left) == MAX_CALLS and all(seconds > 0.9 * LEASE_SECONDS for seconds in left)


async def test_a_model_that_is_too_slow_is_not_waited_for(mind: Mind) -> None:
    session_id = await imported(mind, 30)
    ask, _ = asking(mind)
    slow, told = Slow(), list[CompactionEvent]()
    compacting = replace(
        mind.compacting("threshold"),
        model=replace(ask, model=slow),
        new_budget=lambda: CallBudget(seconds=0.05),
        on_event=told.append,
    )
    view = await compacting.compact(session_id, max_tokens=4_000)
    assert view[0].kind == "turn" and len(slow.most) == 1, "the seconds are for all calls together"
    (failed,) = [event.error for event in told if isinstance(event, CompactionFailed)]
    assert "did not answer in" in failed and failed.endswith(FALLBACK_NOTICE)


@pytest.mark.slow
async def test_an_answer_has_room_for_the_form_and_a_prompt_fits_the_models_window(mind: Mind) -> None:
    # the prompt of a turn with 40 outputs
    output = "\n".join(f"{n:5d}  value_{n} = {n}" for n in range(200))
    work = [line for n in range(40) for line in (calls(f"c{n}"), gives(f"c{n}", output))]
    small = [says("user", "Go on."), says("assistant", "Well. " * 150)]
    ask, _ = asking(mind, per_day=10**9)
    slow = Narrow(GOOD, GOOD)
    chosen: dict[str, object] = {"model": replace(ask, model=slow)}
    talking = Talking(mind, "threshold(recent=1)", chosen=chosen)
    await talking.turns([[says("user", "Go."), *work, says("assistant", "Done.")], small, turn(9)], most=300)
    assert slow.received and all((most or 0) >= 300 for most in slow.most)
    longest = max(count(asked[0].text) for asked in slow.received)
    assert 0.5 * 2_000 < longest <= 0.6 * 4_000
