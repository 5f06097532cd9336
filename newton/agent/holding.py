"""Holds a session for one turn: others wait, and a holder that dies is waited for no longer than its lease."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from newton.db.pool import Database
from newton.dialogue import holding
from newton.errors import BusyError, DatabaseError
from newton.ids import new_id

LEASE = 10.0  # seconds; renewed three times within it
LOOK = 0.05  # seconds between looks whether it is free, growing to half a second
PATIENCE = 120.0


@asynccontextmanager
async def held(db: Database, *, agent_id: UUID, session_id: UUID) -> AsyncGenerator[None]:
    """The session is this turn's until the end of the block. No unit of work stays open for it.

    Raises BusyError when another turn of it does not end within two minutes.
    """
    holder = new_id()
    await _taken(db, holder, agent_id=agent_id, session_id=session_id)
    renewing = asyncio.create_task(_renewed(db, holder, agent_id=agent_id, session_id=session_id))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.shield(_released(db, holder, agent_id=agent_id, session_id=session_id))


async def _taken(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    until, pause = asyncio.get_running_loop().time() + PATIENCE, LOOK
    while not await _hold(db, holder, agent_id=agent_id, session_id=session_id):
        if asyncio.get_running_loop().time() > until:
            raise BusyError("Another turn of this session does not end.", hint="Try again later.")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.5)


async def _renewed(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    while True:
        await asyncio.sleep(LEASE / 3)
        try:
            await _hold(db, holder, agent_id=agent_id, session_id=session_id)
        except DatabaseError:
            continue  # the turn itself will meet it, or it is back before the lease ends


async def _hold(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> bool:
    async with db.work(agent_id) as tx:
        return await holding.hold(tx, holder, agent_id=agent_id, session_id=session_id, seconds=LEASE)


async def _released(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    try:
        async with db.work(agent_id) as tx:
            await holding.release(tx, holder, agent_id=agent_id, session_id=session_id)
    except DatabaseError:
        return  # the lease ends by itself
