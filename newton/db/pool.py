"""Connection pool and transactions. The caller owns a transaction; stores receive it and never begin or commit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import asyncpg
from pgvector.asyncpg import register_vector

from newton.concurrency import with_timeout
from newton.errors import DatabaseError, InputError, SchemaVersionError

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# The argument of stores: a connection with a transaction that the caller has begun.
Tx: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

APP_ROLE, WORKER_ROLE = "newton_app", "newton_worker"
# A statement without arguments, so that it can go to the server in one message with the one that begins the work.
AGENT_SCOPE_SQL = """
select
    set_config('role', '{role}', true),
    set_config('newton.agent_id', '{agent}', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_mergejoin', 'off', true)
"""
WORKER_SCOPE_SQL = "select set_config('role', '{role}', true)"
SNAPSHOT_SQL = "select pg_current_snapshot()::text"
CONNECT_SECONDS, STATEMENT_SECONDS, CLOSE_SECONDS = 10, 60, 1
WORKER_CONNECTIONS = 3  # queue connections, separate from the main pool: one claims, one renews, one is spare
MAX_ATTEMPTS, RETRY_SECONDS = 3, 0.05  # attempts of a retryable transaction, and the seconds after the first

T = TypeVar("T")

BeforeCommit = Callable[[Tx], Awaitable[None]]
AfterCommit = Callable[[], Awaitable[None]]


class _TransactionHooks(NamedTuple):
    """Hooks of the open transaction: before its commit and after it."""

    before_commit: list[BeforeCommit]
    after_commit: list[AfterCommit]


_current: ContextVar[_TransactionHooks | None] = ContextVar("newton_unit_of_work", default=None)


def in_transaction() -> bool:
    """Return True while a transaction is open in this task. No model is called while one is."""
    return _current.get() is not None


def before_commit(hook: BeforeCommit) -> None:
    """Run the hook just before the open transaction commits: for locks that must be held briefly."""
    _current_hooks().before_commit.append(hook)


def after_commit(hook: AfterCommit) -> None:
    """Run the hook after the open transaction commits: for effects that cannot be rolled back."""
    _current_hooks().after_commit.append(hook)


def _current_hooks() -> _TransactionHooks:
    unit = _current.get()
    assert unit is not None, "no transaction is open"
    return unit


async def begin(tx: Tx, agent: UUID, *, snapshot: bool = False) -> None:
    """Begin a transaction scoped to one agent by row level security. Raises SchemaVersionError when the connection's
    user may not assume the application's role.

    The planner is told that pages are in memory: by default it avoids the covering index and, where one agent has most
    rows, scans the whole table at twice the time. Merge joins are off: overestimated word counts of a search would make
    it sort thousands of rows.
    """
    mode = " isolation level repeatable read read only" if snapshot else ""
    await _begin_as(tx, APP_ROLE, AGENT_SCOPE_SQL.format(role=APP_ROLE, agent=UUID(int=agent.int)), mode=mode)


async def _begin_as(tx: Tx, role: str, scope: str, *, mode: str = "") -> None:
    with _translate_role_errors(role):
        await tx.execute(f"begin{mode};{scope}")


@contextmanager
def _translate_role_errors(role: str) -> Generator[None]:
    try:
        yield
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as error:
        raise SchemaVersionError(
            f"The database user may not work as {role}: {error}.",
            hint=f"Let the owner of the database run `grant {role} to` that user.",
        ) from error


@asynccontextmanager
async def _transaction_block(tx: Tx, agent: UUID | None, *, snapshot: bool) -> AsyncGenerator[None]:
    end = "rollback"
    try:
        if agent is None:
            await _begin_as(tx, WORKER_ROLE, WORKER_SCOPE_SQL.format(role=WORKER_ROLE))
        else:
            await begin(tx, agent, snapshot=snapshot)
        yield
        end = "commit"
    finally:
        await tx.execute(end)


async def _register_vector(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    try:
        await register_vector(connection)
    except ValueError as error:
        raise SchemaVersionError(
            "The database has no pgvector in its schema public.",
            hint="Run `create extension vector`, or `alter extension vector set schema public`.",
        ) from error


async def _skip_reset(connection: Tx) -> None:
    """Do nothing on release: all settings end with their transaction, so RESET ALL would waste a round trip."""


class Database:
    def __init__(
        self,
        pool: "asyncpg.Pool[asyncpg.Record]",
        queue: "asyncpg.Pool[asyncpg.Record]",
        listeners: "asyncpg.Pool[asyncpg.Record]",
    ) -> None:
        self._pool, self._queue, self._listeners = pool, queue, listeners

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8, worker: str | None = None) -> "Database":
        """Connect to the database. `worker` is the connection string of the queue's role; its pool connects on first
        use. Raises DatabaseError when the server does not answer within ten seconds."""
        with translate_connect_errors():
            pool = await _create_pool(dsn, min_size=1, max_size=size)
            queue = await _create_pool(worker or dsn, min_size=0, max_size=WORKER_CONNECTIONS)
            return cls(pool, queue, await _create_pool(dsn, min_size=0, max_size=1))

    async def close(self) -> None:
        """Close the pools, waiting briefly for open transactions before dropping their connections."""
        try:
            await with_timeout(self._close_pools(), seconds=CLOSE_SECONDS)
        except TimeoutError:
            self.terminate()

    async def _close_pools(self) -> None:
        await self._queue.close()
        await self._listeners.close()
        await self._pool.close()

    def terminate(self) -> None:
        """Drop every connection; pending calls raise DatabaseError."""
        self._queue.terminate()
        self._listeners.terminate()
        self._pool.terminate()

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """Yield one atomic transaction in one agent's scope. With `snapshot` it is read-only and repeatable-read.

        Raises DatabaseError when the database fails, or aborts it to resolve a deadlock.
        """
        async with self._run_transaction(self._pool, agent, snapshot=snapshot) as tx:
            yield tx

    @asynccontextmanager
    async def worker_transaction(self) -> AsyncGenerator[Tx]:
        """Yield a transaction on the queue and agent names of all agents, as a role limited to those. Raises
        DatabaseError as `transaction` does."""
        async with self._run_transaction(self._queue, None) as tx:
            yield tx

    @asynccontextmanager
    async def _run_transaction(
        self, pool: "asyncpg.Pool[asyncpg.Record]", agent: UUID | None, *, snapshot: bool = False
    ) -> AsyncGenerator[Tx]:
        assert not in_transaction(), "a transaction is already open; pass its connection down"
        unit = _TransactionHooks([], [])
        mark = _current.set(unit)
        try:
            with translate_connect_errors():
                tx = await pool.acquire()
            try:
                with translate_errors(tx):
                    async with _transaction_block(tx, agent, snapshot=snapshot):
                        yield tx
                        for last in unit.before_commit:
                            await last(tx)
            finally:
                await pool.release(tx)
        finally:
            _current.reset(mark)
        for then in unit.after_commit:
            await then()

    async def listen(self, channel: str, on_message: Callable[[str], None]) -> None:
        """Call `on_message` for each notification on the channel, over a dedicated connection, until it is lost. Raises
        DatabaseError when no connection can be made."""
        lost = asyncio.Event()

        def hear(connection: object, process: int, name: str, said: object) -> None:
            on_message(str(said))

        with translate_connect_errors():
            ear = await self._listeners.acquire()
        try:
            with translate_errors(ear):
                ear.add_termination_listener(lambda connection: lost.set())
                await ear.add_listener(channel, hear)
                on_message("")  # notifications sent before LISTEN took effect are lost
                await lost.wait()
        finally:
            with translate_errors(ear):
                await ear.remove_listener(channel, hear)
            await self._listeners.release(ear)

    async def current_snapshot(self) -> str:
        """Return the transaction snapshot of the server; an equal value later means that no agent has written in
        between. It reads no rows, so it needs no scope. Raises DatabaseError as `transaction` does."""
        async with self.single_statement() as tx:
            return await tx.fetchval(SNAPSHOT_SQL)

    @asynccontextmanager
    async def single_statement(self) -> AsyncGenerator[Tx]:
        """Yield a connection for one statement without scope, or with its own: a transaction costs two more round
        trips. Raises DatabaseError as `transaction` does."""
        with translate_connect_errors():
            tx = await self._pool.acquire()
        try:
            with translate_errors(tx), _translate_role_errors(APP_ROLE):
                yield tx
        finally:
            await self._pool.release(tx)

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in a transaction, and again after a conflict with another writer. `work` may only use the
        database: other effects of a failed attempt are not undone."""
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return await self._run_once(agent, work)
            except _TransactionConflictError:
                await asyncio.sleep(RETRY_SECONDS * attempt)  # avoids a second conflict with the same writer
        return await self._run_once(agent, work)

    async def _run_once(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        async with self.transaction(agent) as tx:
            return await work(tx)


async def _create_pool(dsn: str, *, min_size: int, max_size: int) -> "asyncpg.Pool[asyncpg.Record]":
    return await asyncpg.create_pool(
        dsn,
        min_size=min_size,
        max_size=max_size,
        init=_register_vector,
        reset=_skip_reset,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
    )


class NestedDatabase(Database):
    """The database inside an open transaction: all work through it commits or rolls back with that one. Do not pass it
    to code that calls a model."""

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert agent == self._agent, "the open transaction belongs to another agent"
        assert not snapshot, "the open transaction may have written already"
        yield self._tx

    async def current_snapshot(self) -> str:
        return await self._tx.fetchval(SNAPSHOT_SQL)

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        async with self.transaction(agent) as tx:
            return await work(tx)


SERVER_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server was shut down, crashed, or cancelled the statement
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # after a failover
)


class _TransactionConflictError(DatabaseError):
    """A deadlock or serialization failure; the transaction was rolled back and can be retried."""


@contextmanager
def translate_connect_errors() -> Generator[None]:
    """Translate connection failures to DatabaseError. The invalid part of a connection string is not repeated: it may
    contain the password."""
    try:
        yield
    except (ValueError, OverflowError):  # asyncpg accepts any number as a port
        raise DatabaseError(
            "DATABASE_URL, or a PG… variable beside it, is not usable.",
            hint="Write postgresql://user:password@host:5432/name; in a password @ is %40, : %3A, / %2F, # %23, ? %3F.",
        ) from None
    except TimeoutError as error:
        raise _unreachable_error(f"no answer within {CONNECT_SECONDS} seconds") from error
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise _unreachable_error(str(error)) from error


@contextmanager
def translate_errors(tx: Tx) -> Generator[None]:
    """Translate server failures during a transaction to DatabaseError; errors of a statement itself pass through."""
    try:
        yield
    except TimeoutError as error:
        raise DatabaseError(
            f"The database did not finish a statement within {STATEMENT_SECONDS} seconds.",
            hint="It is overloaded, or another session holds a lock (see pg_stat_activity); try again later.",
        ) from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        raise _TransactionConflictError(
            "The transaction conflicted with another writer and was rolled back.", hint="Try again."
        ) from error
    except (OSError, *SERVER_ERRORS) as error:
        raise _failure_error(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        if _is_closed(tx):
            raise _failure_error("it ended the connection") from error
        raise


@contextmanager
def reject_invalid_rows(label: str) -> Generator[None]:
    """Translate constraint violations of imported rows to InputError."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedTableError) as error:
        raise InputError(
            f"{label}: {error}.", hint="Nothing was stored. Check that both databases have the same version."
        ) from error


def _is_closed(tx: Tx) -> bool:
    try:
        return tx.is_closed()
    except asyncpg.InterfaceError:  # the pool has released it already
        return True


def _failure_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database failed: {reason}.", hint="Check that PostgreSQL runs and has free disk space, then try again."
    )


def _unreachable_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database cannot be reached: {reason.strip() or 'it closed the connection'}.",
        hint="Check DATABASE_URL and that PostgreSQL runs there; unset it to use the embedded server.",
    )
