"""One turn of a session at a time, and nobody waits for the dead."""

import asyncio
from functools import partial
from uuid import UUID

import pytest

from newton.agent.loop.session_lock import SessionLease
from newton.db.pool import Database, Tx
from newton.dialogue import log as holding
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import OverloadedError
from newton.ids import derive_agent_id, new_id
from newton.providers.chat import ToolCall
from tests.support import NOON, teller

ANA = derive_agent_id("ana")


async def test_a_turn_is_one_holder_s_until_it_lets_go_or_its_lease_ends(tx: Tx) -> None:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s1", now=NOON)
    one, other = new_id(), new_id()
    of = {"agent_id": ANA, "session_id": session_id}
    assert await holding.acquire_lease(tx, one, "turn", **of, seconds=60)
    assert await holding.acquire_lease(tx, one, "turn", **of, seconds=60)
    assert not await holding.acquire_lease(tx, other, "turn", **of, seconds=60)
    await holding.release_lease(tx, other, "turn", **of)
    assert not await holding.acquire_lease(tx, other, "turn", **of, seconds=60)
    await holding.release_lease(tx, one, "turn", **of)
    assert await holding.acquire_lease(tx, other, "turn", **of, seconds=-1)
    assert not await holding.renew_lease(tx, one, "turn", **of, seconds=60)
    assert await holding.renew_lease(tx, other, "turn", **of, seconds=-1)
    assert await holding.acquire_lease(tx, one, "turn", **of, seconds=60)  # the other died
    assert not await holding.renew_lease(tx, other, "turn", **of, seconds=60)
    await holding.release_lease(tx, one, "turn", **of)
    assert not await holding.renew_lease(tx, one, "turn", **of, seconds=60)


async def test_a_turn_that_is_called_off_again_and_again_keeps_what_it_keeps_and_then_lets_go(
    db: Database, agent: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R8
    monkeypatch.setattr("newton.agent.loop.session_lock.LEASE_SECONDS", 600)  # one not released outlasts the test
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
    said, free, lease = asyncio.Event(), asyncio.Event(), SessionLease(agent_id=agent, session_id=session_id)
    find = partial(sessions.get_session_id, agent_id=agent, ref="s1")

    async def keep() -> None:
        await free.wait()
        async with db.transaction(agent) as tx:
            await lease.renew(tx)
            await sessions.ensure_session(tx, agent_id=agent, ref="kept", now=NOON)

    async def turn() -> None:
        async with lease.hold(db, find):
            try:
                said.set()
                await asyncio.Event().wait()
            finally:
                await lease.run_to_completion(keep())

    taking = asyncio.create_task(turn())
    await said.wait()
    for _ in range(3):
        taking.cancel()
        await asyncio.wait({taking}, timeout=0.01)
    free.set()
    async with (
        asyncio.timeout(60),
        SessionLease(agent_id=agent, session_id=session_id).hold(db, find) as found,
        db.transaction(agent) as tx,
    ):
        assert found == session_id
        assert await sessions.get_session_id(tx, agent_id=agent, ref="kept")
    with pytest.raises(OverloadedError):
        await keep()
    async with asyncio.timeout(60), SessionLease(agent_id=agent, session_id=session_id).hold(db, find):
        pass


async def test_calls_are_open_until_they_are_answered(tx: Tx) -> None:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s1", now=NOON)
    calls = (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}"))
    asked = Message(role="assistant", content="", said_at=NOON, calls=calls)
    given = Message(role="tool", content="a cup", said_at=NOON, tool_call_id="c1")
    await sessions.append(tx, [asked, given], session_id=session_id, ctx=teller(ANA))
    start = await holding.read_turn_start(tx, agent_id=ANA, session_id=session_id)
    assert start.open_calls == [ToolCall("c2", "look", "{}")]
