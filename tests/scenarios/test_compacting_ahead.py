"""Compaction ahead of need: in the background after a turn, or once a session is idle.."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from pydantic import BaseModel

from newton.agent.compaction import service
from newton.agent.compaction.background import BackgroundCompactions
from newton.dialogue.view import count_view_tokens
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.talking import Talking
from tests.scenarios.test_summarizing import GOOD, asking, turns
from tests.support import until

NEVER = 1_000_000.0  # seconds


class Gated(ScriptedChat):
    """Answers when its gate is opened."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.gate = asyncio.Event()

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        await self.gate.wait()
        async for piece in super().stream(messages, max_tokens=max_tokens, schema=schema):
            yield piece


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
    gated = Gated(*[GOOD] * 20)
    talking, tokens = await prepared(mind, model=replace(model, model=gated))
    session_id = await mind.session()
    view = await talking.compacting.load_view(session_id, max_tokens=tokens)
    assert not gated.gate.is_set() and count_view_tokens(view) < 0.8 * tokens, "it is cut, and nobody has answered"
    assert view[0].text.startswith("[SUMMARIZED]") and not await made(talking)
    second = asyncio.create_task(talking.compacting.load_view(session_id, max_tokens=tokens))
    assert count_view_tokens(await second) == count_view_tokens(view), "the next turn waits for nothing"
    gated.gate.set()
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
    gated = Gated(*[GOOD] * 20)
    talking, tokens = await prepared(mind, model=replace(model, model=gated))
    background, session_id = talking.compacting.background, await mind.session()
    view = (await talking.doors.get_view("s1")).view
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=tokens)
    await background.finish(seconds=0.0)
    await background.cancel()
    held = await mind.fetchval("select count(*) from dialogue.leases where expires_at > now()")
    assert held == 0, "the session is free for the next process"
    gated.gate.set()
    talking.compacting.compact_ahead(session_id, view, new_tokens=0, max_tokens=tokens)
    await background.finish(seconds=60)
    assert await made(talking)
    await background.cancel()
