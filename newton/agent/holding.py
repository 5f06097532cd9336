"""Holds a session for one turn: others wait, and a holder that dies is waited for no longer than its lease."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.dialogue import holding
from newton.errors import BusyError, DatabaseError
from newton.ids import new_id

LEASE = 10.0  # seconds; renewed three times within it
LOOK = 0.05  # seconds between looks whether it is free, growing to half a second
PATIENCE = 120.0

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Lease:
    """The right to a turn. It is `lost` as soon as another is seen to have taken it over, as after a standstill."""

    agent_id: UUID
    session_id: UUID
    holder: UUID
    lost: bool = False
    limit: asyncio.Timeout | None = None
    under_way: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    async def through(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives. When who waits for it is called off it is done to its end all the same, and the lease is
        let go after it."""
        doing = asyncio.create_task(work)
        self.under_way.add(doing)
        doing.add_done_callback(self.under_way.discard)
        return await asyncio.shield(doing)

    async def during(self, work: Awaitable[T]) -> T:
        """What the work gives; it is called off when the lease is lost, and BusyError raised."""
        self.hold()
        try:
            async with asyncio.timeout(None) as self.limit:
                done = await work
        except TimeoutError:
            self.hold()
            raise
        finally:
            self.limit = None
        self.hold()
        return done

    def lose(self) -> None:
        self.lost = True
        if self.limit is not None:
            self.limit.reschedule(asyncio.get_running_loop().time())

    def hold(self) -> None:
        """Raises BusyError when it is lost."""
        if self.lost:
            raise BusyError(
                "Another turn of this session has taken over while this one stood still.", hint="Send it again."
            )

    async def kept(self, tx: Tx) -> None:
        """To be asked in the unit of work that writes: nobody else takes the turn before that one ends. Raises
        BusyError when it is lost."""
        of = {"agent_id": self.agent_id, "session_id": self.session_id}
        self.lost = self.lost or not await holding.keep(tx, self.holder, "turn", **of, seconds=LEASE)
        self.hold()


@asynccontextmanager
async def held(db: Database, *, agent_id: UUID, session_id: UUID) -> AsyncGenerator[Lease]:
    """The session is this turn's until the end of the block, or until the lease is lost. No unit of work stays open
    for it.

    Raises BusyError when another turn of it does not end within two minutes.
    """
    lease = Lease(agent_id=agent_id, session_id=session_id, holder=new_id())
    try:
        await _taken(db, lease.holder, agent_id=agent_id, session_id=session_id)
        renewing = asyncio.create_task(_renewed(db, lease))
        try:
            yield lease
        finally:
            renewing.cancel()
    finally:
        await asyncio.shield(_released(db, lease))


async def _taken(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    until, pause = asyncio.get_running_loop().time() + PATIENCE, LOOK
    while not await _hold(db, holder, agent_id=agent_id, session_id=session_id):
        if asyncio.get_running_loop().time() > until:
            raise BusyError("Another turn of this session does not end.", hint="Try again later.")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.5)


async def _renewed(db: Database, lease: Lease) -> None:
    while not lease.lost:
        await asyncio.sleep(LEASE / 3)
        try:
            of = {"agent_id": lease.agent_id, "session_id": lease.session_id}
            async with db.work(lease.agent_id) as tx:
                kept = await holding.keep(tx, lease.holder, "turn", **of, seconds=LEASE)
            if not kept:
                lease.lose()
        except DatabaseError:
            continue  # the turn itself will meet it, or it is back before the lease ends


async def _hold(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> bool:
    async with db.work(agent_id) as tx:
        return await holding.hold(tx, holder, "turn", agent_id=agent_id, session_id=session_id, seconds=LEASE)


async def _released(db: Database, lease: Lease) -> None:
    if lease.under_way:
        await asyncio.wait(lease.under_way)
    try:
        async with db.work(lease.agent_id) as tx:
            of = {"agent_id": lease.agent_id, "session_id": lease.session_id}
            await holding.release(tx, lease.holder, "turn", **of)
    except DatabaseError:
        return  # the lease ends by itself
