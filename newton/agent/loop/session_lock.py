"""The lease of a session for one turn: turns run one at a time, and the lease of a dead process expires."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.dialogue import leases
from newton.errors import DatabaseError, OverloadedError
from newton.ids import new_id

LEASE_SECONDS = 10.0  # renewed every third of it
POLL_SECONDS = 0.05  # the first interval; it grows to half a second
MAX_WAIT_SECONDS = 120.0

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class SessionLease:
    """An exclusive lease on a session. `is_lost` becomes True when another turn has taken it over."""

    agent_id: UUID
    session_id: UUID
    holder: UUID
    is_lost: bool = False
    timeout: asyncio.Timeout | None = None
    pending_tasks: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    async def run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result. If the caller is cancelled, `work` still completes before the release."""
        task = asyncio.create_task(work)
        self.pending_tasks.add(task)
        task.add_done_callback(self.pending_tasks.discard)
        return await asyncio.shield(task)

    async def run(self, work: Awaitable[T]) -> T:
        """Run `work` and return its result. Cancel it and raise OverloadedError when the lease is lost."""
        self.ensure_held()
        try:
            async with asyncio.timeout(None) as self.timeout:
                result = await work
        except TimeoutError:
            self.ensure_held()
            raise
        finally:
            self.timeout = None
        self.ensure_held()
        return result

    def mark_lost(self) -> None:
        self.is_lost = True
        if self.timeout is not None:
            self.timeout.reschedule(asyncio.get_running_loop().time())

    def ensure_held(self) -> None:
        """Raise OverloadedError if the lease is lost."""
        if self.is_lost:
            raise OverloadedError(
                "Another turn has taken over this session, because this one paused too long.",
                hint="Send the message again.",
            )

    async def renew(self, tx: Tx) -> None:
        """Renew the lease in the transaction that writes, so that no other turn can take it before the commit.

        Raises OverloadedError when the lease is lost.
        """
        key = {"agent_id": self.agent_id, "session_id": self.session_id}
        self.is_lost = self.is_lost or not await leases.renew(tx, self.holder, "turn", **key, seconds=LEASE_SECONDS)
        self.ensure_held()


@asynccontextmanager
async def lease_session(db: Database, *, agent_id: UUID, session_id: UUID) -> AsyncGenerator[SessionLease]:
    """Lease the session for the duration of the block. No transaction stays open meanwhile.

    Raises OverloadedError when another turn does not end within two minutes.
    """
    lease = SessionLease(agent_id=agent_id, session_id=session_id, holder=new_id())
    try:
        await _wait_for_lease(db, lease.holder, agent_id=agent_id, session_id=session_id)
        renewing = asyncio.create_task(_renew_periodically(db, lease))
        try:
            yield lease
        finally:
            renewing.cancel()
    finally:
        await asyncio.shield(_release(db, lease))


async def _wait_for_lease(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    deadline, pause = asyncio.get_running_loop().time() + MAX_WAIT_SECONDS, POLL_SECONDS
    while not await _try_acquire(db, holder, agent_id=agent_id, session_id=session_id):
        if asyncio.get_running_loop().time() > deadline:
            raise OverloadedError("Another turn of this session is still running.", hint="Retry later.")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.5)


async def _renew_periodically(db: Database, lease: SessionLease) -> None:
    while not lease.is_lost:
        await asyncio.sleep(LEASE_SECONDS / 3)
        try:
            key = {"agent_id": lease.agent_id, "session_id": lease.session_id}
            async with db.transaction(lease.agent_id) as tx:
                renewed = await leases.renew(tx, lease.holder, "turn", **key, seconds=LEASE_SECONDS)
            if not renewed:
                lease.mark_lost()
        except DatabaseError:
            continue  # the turn fails on its own, or the database returns before the lease expires


async def _try_acquire(db: Database, holder: UUID, *, agent_id: UUID, session_id: UUID) -> bool:
    async with db.transaction(agent_id) as tx:
        return await leases.acquire(tx, holder, "turn", agent_id=agent_id, session_id=session_id, seconds=LEASE_SECONDS)


async def _release(db: Database, lease: SessionLease) -> None:
    if lease.pending_tasks:
        await asyncio.wait(lease.pending_tasks)
    try:
        async with db.transaction(lease.agent_id) as tx:
            key = {"agent_id": lease.agent_id, "session_id": lease.session_id}
            await leases.release(tx, lease.holder, "turn", **key)
    except DatabaseError:
        return  # the lease expires
