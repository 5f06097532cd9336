"""Connection pools and transactions. A caller begins and ends a transaction; the modules with SQL only use it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from newton.clock import monotonic_ms
from newton.concurrency import run_to_completion
from newton.db.driver import (
    CONNECT_SECONDS,
    STATEMENT_SECONDS,
    TransactionConflictError,
    register_types,
    translate_connect_errors,
    translate_errors,
)
from newton.db.transaction_log import SNAPSHOT_SQL, TRANSACTION_SQL, DatabaseSnapshot, TransactionLog
from newton.errors import DatabaseError, DiskFullError, SchemaVersionError

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# The connection that stores take; their caller has begun a transaction on it.
Tx: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# No bind parameters, so that BEGIN and this statement go to the server in one message. The planner assumes that pages
# are in memory: by default it avoids the covering index and, where one agent owns most rows, scans the whole table in
# twice the time. Merge joins are off: with overestimated word counts, a search would sort thousands of rows.
AGENT_SCOPE_SQL = """
select
    set_config('role', runtime.app_role(), true),
    runtime.set_agent_scope('{agent}'),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_mergejoin', 'off', true)
"""
WORKER_SCOPE_SQL = "select set_config('role', runtime.worker_role(), true)"
CLOSE_SECONDS = 1
WORKER_CONNECTIONS = 3  # connections of the queue's pool: one claims runs, one renews leases, one is spare
DISK_FULL_SECONDS = 120  # after a failure on a full disk, during which the database counts as full
MAX_ATTEMPTS, RETRY_SECONDS = 3, 0.05  # of a transaction with conflicts; the delay grows linearly

T = TypeVar("T")

BeforeCommit = Callable[[Tx], Awaitable[None]]
AfterCommit = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _TransactionHooks:
    """The functions to call before and after the commit of the open transaction, and what it has written.

    `has_written` means that it may have changed data that contexts show. `written_as` is the server and the id of the
    transaction, once known; `context_id` is the id if the transaction has stored a context. `has_visited` means that it
    has used the rows of another agent too.
    """

    before_commit: list[BeforeCommit]
    after_commit: list[AfterCommit]
    has_written: bool = False
    written_as: tuple[str, int] | None = None
    context_id: int | None = None
    has_visited: bool = False


_current: ContextVar[_TransactionHooks | None] = ContextVar("newton_unit_of_work", default=None)


def in_transaction() -> bool:
    """Return whether this task has an open transaction. A model must not be called meanwhile."""
    return _current.get() is not None


def note_write() -> None:
    """Record that the open transaction, if there is one, has written."""
    if hooks := _current.get():
        hooks.has_written = True


def note_stored_context(transaction_id: int) -> None:
    """Record that the open transaction has only stored a context (text for a model), and its id on the server.

    It then invalidates no cached context, unless it writes something else afterwards.
    """
    if hooks := _current.get():
        hooks.context_id, hooks.has_written = transaction_id, False


def before_commit(hook: BeforeCommit) -> None:
    """Call `hook` just before the open transaction commits, for example to hold a lock only briefly."""
    _current_hooks().before_commit.append(hook)


def after_commit(hook: AfterCommit) -> None:
    """Call `hook` after the open transaction has committed, for effects that cannot be rolled back."""
    _current_hooks().after_commit.append(hook)


def _current_hooks() -> _TransactionHooks:
    hooks = _current.get()
    assert hooks is not None, "no transaction is open"
    return hooks


@contextmanager
def _translate_role_errors() -> Generator[None]:
    try:
        yield
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as error:
        raise SchemaVersionError(
            f"The database user may not work as the role of the application: {error}.",
            hint="Set DATABASE_URL to the connection string of the owner of the database, or let an administrator run"
            " the SQL that `newton db requirements` prints.",
        ) from error


async def begin(tx: Tx, agent: UUID | None, *, snapshot: bool = False) -> None:
    """Begin a transaction that sees only the rows of one agent or, if `agent` is None, only the job queue.

    Row level security enforces this. With `snapshot` it is read-only, and all statements see the same state. Raises
    SchemaVersionError if the database user may not use the role.
    """
    scope = WORKER_SCOPE_SQL if agent is None else AGENT_SCOPE_SQL.format(agent=UUID(int=agent.int))
    mode = " isolation level repeatable read read only" if snapshot else ""
    with _translate_role_errors():
        await tx.execute(f"begin{mode};{scope}")


@asynccontextmanager
async def visit_agent(tx: Tx, agent: UUID, *, home: UUID) -> AsyncGenerator[None]:
    """Let the open transaction of `home` use the rows of another agent alone. What it writes may concern any agent."""
    if hooks := _current.get():
        hooks.has_visited = True
    await tx.execute(f"select runtime.set_agent_scope('{UUID(int=agent.int)}')")
    try:
        yield
    finally:
        with suppress(asyncpg.InFailedSQLTransactionError):  # it can only be rolled back
            await tx.execute(f"select runtime.set_agent_scope('{UUID(int=home.int)}')")


@asynccontextmanager
async def savepoint(tx: Tx) -> AsyncGenerator[None]:
    """Roll back what the open transaction writes within this block if the block raises an error."""
    is_complete = False
    await tx.execute("savepoint part")
    try:
        yield
        is_complete = True
    finally:
        await tx.execute("release savepoint part" if is_complete else "rollback to savepoint part")


@asynccontextmanager
async def _transaction_block(tx: Tx, agent: UUID | None, *, snapshot: bool) -> AsyncGenerator[None]:
    is_complete = False
    try:
        await begin(tx, agent, snapshot=snapshot)
        yield
        is_complete = True
    finally:
        # a rollback is completed even if a second deadline cancels it
        ended = await (tx.execute("commit") if is_complete else run_to_completion(tx.execute("rollback")))
    if ended == "ROLLBACK":  # the answer of the server to the commit of a transaction in which a statement failed
        raise DatabaseError("A statement of the transaction failed, and nothing was stored.", hint="Try again.")


async def _find_transaction(tx: Tx, hooks: _TransactionHooks, server: str | None) -> None:
    """Find the server and the id of a transaction that has written, unless they are known.

    `server` is the server with the agent's rows, if known; then a stored context needs no query.
    """
    if hooks.context_id is not None and server is not None:
        hooks.written_as = server, hooks.context_id
    elif (hooks.has_written or hooks.context_id is not None) and hooks.written_as is None:
        row = await tx.fetchrow(TRANSACTION_SQL)
        if row is not None and row["transaction_id"] is not None:
            hooks.written_as = row["server"], row["transaction_id"]


@asynccontextmanager
async def connect(dsn: str) -> AsyncGenerator[Tx]:
    """Yield a connection outside the pools. Raises DatabaseError if it cannot be opened, or is lost in the block."""
    with translate_connect_errors():
        connection = await asyncpg.connect(dsn, timeout=CONNECT_SECONDS)
    try:
        with translate_errors(connection):
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _acquire(pool: Pool) -> AsyncGenerator[Tx]:
    with translate_connect_errors():
        connection = await pool.acquire()
    try:
        with translate_errors(connection):
            yield connection
    finally:
        await pool.release(connection)


async def _skip_reset(connection: Tx) -> None:
    """Do nothing when a connection returns to the pool: all settings end with their transaction."""


class Database:
    """The connections to a database: a pool for agents, one for the job queue, and a connection for each listener."""

    _disk_full_ms: float | None = None

    def __init__(self, pool: Pool, queue: Pool, connect: Callable[[], Awaitable[Connection]]) -> None:
        self._pool, self._queue, self._connect = pool, queue, connect
        self._listeners = set["asyncpg.Connection[asyncpg.Record]"]()
        self.transaction_log = TransactionLog()

    @property
    def is_disk_full(self) -> bool:
        """Return whether a statement failed within the last `DISK_FULL_SECONDS` because the disk is full."""
        return self._disk_full_ms is not None and monotonic_ms() - self._disk_full_ms < 1_000 * DISK_FULL_SECONDS

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8, worker: str | None = None) -> "Database":
        """Connect to the database `dsn` with a pool of `size` connections.

        The pool of the job queue connects to `worker` (or `dsn`) at its first use. Raises DatabaseError if the
        connection fails.
        """
        with translate_connect_errors():
            pool = await _create_pool(dsn, min_size=1, max_size=size)
            queue = await _create_pool(worker or dsn, min_size=0, max_size=WORKER_CONNECTIONS)
            connect = partial(asyncpg.connect, dsn, timeout=CONNECT_SECONDS, command_timeout=STATEMENT_SECONDS)
            return cls(pool, queue, connect)

    async def close(self) -> None:
        """Close all connections. Transactions that are still open after CLOSE_SECONDS are aborted."""
        self._end_listeners()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for pool in (self._queue, self._pool):
                    await pool.close()
        except TimeoutError:
            self.terminate()

    def terminate(self) -> None:
        """Close all connections at once; pending calls raise DatabaseError."""
        self._end_listeners()
        for pool in (self._queue, self._pool):
            pool.terminate()

    def _end_listeners(self) -> None:
        for listener in self._listeners:
            listener.terminate()

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """Yield a transaction that sees only the rows of one agent.

        Raises DatabaseError if the server or connection fails. With `snapshot` it is read-only, and all its statements
        see the same state (repeatable read).
        """
        async with self._run_transaction(self._pool, agent, snapshot=snapshot) as tx:
            yield tx

    @asynccontextmanager
    async def worker_transaction(self) -> AsyncGenerator[Tx]:
        """Yield a transaction that sees only the job queue and the names of all agents.

        Raises DatabaseError if it fails.
        """
        async with self._run_transaction(self._queue, None) as tx:
            yield tx

    @asynccontextmanager
    async def _run_transaction(self, pool: Pool, agent: UUID | None, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """Yield a transaction, commit it at the end of the block, and call its hooks; roll it back after an error."""
        assert not in_transaction(), "a transaction is already open; pass its connection down"
        hooks, log = _TransactionHooks([], []), self.transaction_log
        previous = _current.set(hooks)
        try:
            async with _acquire(pool) as tx, _transaction_block(tx, agent, snapshot=snapshot):
                yield tx
                if log.is_kept:  # asked before the hooks, which take locks
                    await _find_transaction(tx, hooks, log.find_server(agent))
                for hook in hooks.before_commit:
                    await hook(tx)
                if log.is_kept and hooks.before_commit:
                    await _find_transaction(tx, hooks, log.find_server(agent))
            if hooks.written_as and log.is_kept and not hooks.has_visited:
                log.add(*hooks.written_as, agent if hooks.has_written else None)
        except DiskFullError:
            self._disk_full_ms = monotonic_ms()
            raise
        finally:
            _current.reset(previous)
        for then in hooks.after_commit:
            await then()

    async def listen(self, channel: str, on_message: Callable[[str], None]) -> None:
        """Call `on_message` for each notification on the channel. Raises DatabaseError when the connection is lost.

        It is called once with an empty text when listening has begun.
        """
        lost = asyncio.Event()

        def forward(connection: object, process: int, name: str, payload: object) -> None:
            on_message(str(payload))

        with translate_connect_errors():
            listener = await self._connect()
        self._listeners.add(listener)
        try:
            listener.add_termination_listener(lambda connection: lost.set())
            with translate_errors(listener):
                await listener.add_listener(channel, forward)
            on_message("")  # notifications sent before LISTEN took effect are lost
            await lost.wait()
        finally:
            self._listeners.discard(listener)
            listener.terminate()  # at once, also if this is cancelled

    async def current_snapshot(self, agent: UUID) -> DatabaseSnapshot:
        """Return which transactions have ended on the server with the agent's rows.

        `transaction_log` compares two snapshots. If two are equal, no agent on that server wrote anything in between.
        """
        self.transaction_log.is_kept = True
        async with self.single_statement() as tx:
            snapshot = DatabaseSnapshot.parse(await tx.fetchval(SNAPSHOT_SQL, agent))
        self.transaction_log.set_server(agent, snapshot.server)
        return snapshot

    @asynccontextmanager
    async def single_statement(self) -> AsyncGenerator[Tx]:
        """Yield a connection for one statement outside a transaction, which reads no rows of agents.

        Raises DatabaseError if the server or connection fails.
        """
        async with _acquire(self._pool) as connection:
            with _translate_role_errors():
                yield connection

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in a transaction of the agent; after a deadlock or serialization failure, run it again.

        It is run at most MAX_ATTEMPTS times. `work` may only use the database, because other effects of a failed
        attempt are not undone.
        """
        attempt = 1
        while True:
            try:
                async with self.transaction(agent) as tx:
                    return await work(tx)
            except TransactionConflictError:
                if attempt == MAX_ATTEMPTS:
                    raise
                await asyncio.sleep(RETRY_SECONDS * attempt)  # avoids a second conflict with the same writer
                attempt += 1


async def _create_pool(dsn: str, *, min_size: int, max_size: int) -> Pool:
    return await asyncpg.create_pool(
        dsn,
        min_size=min_size,
        max_size=max_size,
        init=register_types,
        reset=_skip_reset,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
    )


class NestedDatabase(Database):
    """A database within one open transaction, for services that take part in the transaction of their caller.

    All its transactions are the open one; that of another agent sees the rows of that agent alone. Do not pass it to
    code that calls a model.
    """

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert not snapshot, "the open transaction may have written already"
        visit = nullcontext() if agent == self._agent else visit_agent(self._tx, agent, home=self._agent)
        async with visit:
            yield self._tx
