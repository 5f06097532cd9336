"""One turn of a session at a time, and nobody waits for the dead."""

import asyncio
from uuid import UUID

import pytest

from newton.agent.holding import Lease, held
from newton.db.pool import Database, Tx
from newton.dialogue import holding, sessions
from newton.dialogue.lines import Line
from newton.errors import BusyError
from newton.ids import agent_id, new_id
from newton.providers.chat import Call
from tests.support import NOON, teller

ANA = agent_id("ana")


async def test_a_turn_is_one_holder_s_until_it_lets_go_or_its_lease_ends(tx: Tx) -> None:
    session_id = await sessions.session(tx, agent_id=ANA, ref="s1", now=NOON)
    one, other = new_id(), new_id()
    of = {"agent_id": ANA, "session_id": session_id}
    assert await holding.hold(tx, one, "turn", **of, seconds=60)
    assert await holding.hold(tx, one, "turn", **of, seconds=60)
    assert not await holding.hold(tx, other, "turn", **of, seconds=60)
    await holding.release(tx, other, "turn", **of)
    assert not await holding.hold(tx, other, "turn", **of, seconds=60)
    await holding.release(tx, one, "turn", **of)
    assert await holding.hold(tx, other, "turn", **of, seconds=-1)
    assert not await holding.keep(tx, one, "turn", **of, seconds=60)
    assert await holding.keep(tx, other, "turn", **of, seconds=-1)
    assert await holding.hold(tx, one, "turn", **of, seconds=60)  # the other died
    assert not await holding.keep(tx, other, "turn", **of, seconds=60)
    await holding.release(tx, one, "turn", **of)
    assert not await holding.keep(tx, one, "turn", **of, seconds=60)


async def test_a_turn_that_is_called_off_again_and_again_keeps_what_it_keeps_and_then_lets_go(
    db: Database, agent: UUID
) -> None:
    # R8
    async with db.work(agent) as tx:
        session_id = await sessions.session(tx, agent_id=agent, ref="s1", now=NOON)
    said, free, leases = asyncio.Event(), asyncio.Event(), list[Lease]()

    async def keep(lease: Lease) -> None:
        await free.wait()
        async with db.work(agent) as tx:
            await lease.kept(tx)
            await sessions.session(tx, agent_id=agent, ref="kept", now=NOON)

    async def turn() -> None:
        async with held(db, agent_id=agent, session_id=session_id) as lease:
            leases.append(lease)
            try:
                said.set()
                await asyncio.Event().wait()
            finally:
                await lease.through(keep(lease))

    taking = asyncio.create_task(turn())
    await said.wait()
    for _ in range(3):
        taking.cancel()
        await asyncio.wait({taking}, timeout=0.01)
    free.set()
    async with asyncio.timeout(5), held(db, agent_id=agent, session_id=session_id), db.work(agent) as tx:
        assert await sessions.known(tx, agent_id=agent, ref="kept")
    with pytest.raises(BusyError):
        await keep(leases[0])
    async with asyncio.timeout(5), held(db, agent_id=agent, session_id=session_id):
        pass


async def test_calls_are_open_until_they_are_answered(tx: Tx) -> None:
    session_id = await sessions.session(tx, agent_id=ANA, ref="s1", now=NOON)
    calls = (Call("c1", "look", "{}"), Call("c2", "look", "{}"))
    asked = Line(role="assistant", content="", said_at=NOON, calls=calls)
    given = Line(role="tool", content="a cup", said_at=NOON, answers="c1")
    await sessions.append(tx, [asked, given], session_id=session_id, ctx=teller(ANA))
    left = await holding.open_calls(tx, agent_id=ANA, session_id=session_id)
    assert left == [Call("c2", "look", "{}")]
