"""The lease on a session during a turn: turns of a session run one at a time, and a killed process's lease expires."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from newton.db.pool import Database, Tx, after_commit
from newton.deadline import RequestDeadline
from newton.dialogue import log
from newton.errors import DatabaseError, OverloadedError
from newton.ids import new_id

LEASE_SECONDS = 10.0  # renewed after a third of this time
POLL_SECONDS = 0.05  # the first interval; later ones grow to 0.5 seconds
MAX_WAIT_SECONDS = 120.0

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class SessionLease:
    """An exclusive lease on a session: only its holder runs a turn there. It expires unless it is renewed.

    `is_lost` becomes True when another turn has taken the session over, `is_ending` when a transaction begins to
    release the lease, and `is_released` when it has committed.
    """

    agent_id: UUID
    session_id: UUID
    holder: UUID = field(default_factory=new_id)
    deadline: RequestDeadline | None = None
    is_lost: bool = False
    is_ending: bool = False
    is_released: bool = False
    timeout: asyncio.Timeout | None = None
    pending_tasks: set["asyncio.Task[Any]"] = field(default_factory=set["asyncio.Task[Any]"])

    async def run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result.

        If the caller is cancelled, `work` still completes, and `release` waits for it.
        """
        task = asyncio.create_task(work)
        self.pending_tasks.add(task)
        task.add_done_callback(self.pending_tasks.discard)
        return await asyncio.shield(task)

    async def run(self, work: Awaitable[T]) -> T:
        """Run `work` and return its result. If the lease is lost, cancel `work` and raise OverloadedError."""
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
        """Note that another turn has the session, and stop the work that `run` executes."""
        self.is_lost = True
        if self.timeout is not None:
            self.timeout.reschedule(asyncio.get_running_loop().time())

    def ensure_held(self) -> None:
        """Raise OverloadedError if the lease is lost."""
        if self.is_lost:
            raise OverloadedError(
                "This turn was interrupted for too long, so another turn has taken over the session.",
                hint="Send the message again.",
            )

    async def renew(self, tx: Tx) -> None:
        """Renew the lease in the transaction `tx`, so that no other turn can take the session before the commit.

        Raises OverloadedError if the lease is lost.
        """
        self.is_lost = self.is_lost or not await self._renew(tx)
        self.ensure_held()

    async def renew_periodically(self, db: Database) -> None:
        """Renew the lease every LEASE_SECONDS / 3 until it is lost; then cancel the work that `run` executes."""
        while not self.is_lost and not self.is_ending:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                async with db.transaction(self.agent_id) as tx:
                    renewed = await self._renew(tx)
                if not renewed and not self.is_ending:
                    self.mark_lost()
            except DatabaseError:
                continue  # the turn fails by itself, or the database is back before the lease expires

    @asynccontextmanager
    async def hold(self, db: Database, first_work: Callable[[Tx], Awaitable[T]]) -> AsyncGenerator[T]:
        """Lease the session while the `async with` block runs. No transaction stays open meanwhile.

        `first_work` runs in the transaction that acquires the lease, and completes even if the caller is cancelled
        meanwhile; yield its result. Raises OverloadedError if another turn still holds the session at the deadline, or
        after MAX_WAIT_SECONDS.
        """
        try:
            result = await self._acquire(db, first_work)
            renewing = asyncio.create_task(self.renew_periodically(db))
            try:
                yield result
            finally:
                renewing.cancel()
        finally:
            await asyncio.shield(self.release(db))

    async def _acquire(self, db: Database, first_work: Callable[[Tx], Awaitable[T]]) -> T:
        """Wait until the session is free, and lease it. Raises OverloadedError as `hold` does."""
        limit, pause = RequestDeadline.after(MAX_WAIT_SECONDS), POLL_SECONDS
        if self.deadline and self.deadline.at_ms < limit.at_ms:
            limit = self.deadline
        while True:
            acquired = await self.run_to_completion(self._try_acquire(db, first_work))
            if acquired:
                return acquired[0]
            if not limit.remaining:
                what = f"Another message of this session is still being answered after {limit.seconds:g} seconds."
                raise OverloadedError(what, hint="Send the message again later.")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.5)

    async def _try_acquire(self, db: Database, first_work: Callable[[Tx], Awaitable[T]]) -> tuple[T] | None:
        """Return the result of `first_work`; None, without running it, if another turn holds the session."""
        async with db.transaction(self.agent_id) as tx:
            if not await log.acquire_lease(tx, self.holder, "turn", **self._key, seconds=LEASE_SECONDS):
                return None
            return (await first_work(tx),)

    async def release_in(self, tx: Tx) -> None:
        """Release the lease in the transaction `tx`, as its first statement. Another turn can begin after the commit.

        Raises OverloadedError if the lease is lost.
        """
        self.is_ending = True
        self.is_lost = self.is_lost or not await log.release_lease(tx, self.holder, "turn", **self._key)
        self.ensure_held()
        after_commit(self._mark_released)

    async def _mark_released(self) -> None:
        self.is_released = True

    async def release(self, db: Database) -> None:
        """Release the lease once the pending tasks have ended; do nothing if it is released already."""
        if self.pending_tasks:
            await asyncio.wait(self.pending_tasks)
        if self.is_released:
            return
        with suppress(DatabaseError):  # the lease expires
            async with db.transaction(self.agent_id) as tx:
                await log.release_lease(tx, self.holder, "turn", **self._key)

    @property
    def _key(self) -> dict[str, UUID]:
        return {"agent_id": self.agent_id, "session_id": self.session_id}

    async def _renew(self, tx: Tx) -> bool:
        return await log.renew_lease(tx, self.holder, "turn", **self._key, seconds=LEASE_SECONDS)
