"""Connection pool and transactions. The caller owns a transaction; stores receive it and never begin or commit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import asyncpg
from pgvector.asyncpg import register_vector

from newton.errors import DatabaseError, InputError, SchemaVersionError

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# The connection that stores take; their caller has begun a transaction on it.
Tx: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"

APP_ROLE, WORKER_ROLE = "newton_app", "newton_worker"
# No bind parameters, so that BEGIN and this statement go to the server in one message. The planner assumes that pages
# are in memory: by default it avoids the covering index and, where one agent owns most rows, scans the whole table in
# twice the time. Merge joins are off: with overestimated word counts, a search would sort thousands of rows.
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
WORKER_CONNECTIONS = 3  # connections of the queue's pool: one claims runs, one renews leases, one is spare
MAX_ATTEMPTS, RETRY_SECONDS = 3, 0.05  # of a transaction with conflicts; the delay grows linearly

T = TypeVar("T")

BeforeCommit = Callable[[Tx], Awaitable[None]]
AfterCommit = Callable[[], Awaitable[None]]


class _TransactionHooks(NamedTuple):
    """Hooks of the open transaction: before its commit and after it."""

    before_commit: list[BeforeCommit]
    after_commit: list[AfterCommit]


_current: ContextVar[_TransactionHooks | None] = ContextVar("newton_unit_of_work", default=None)


def in_transaction() -> bool:
    """Return True while this task has an open transaction; a model must not be called then."""
    return _current.get() is not None


def before_commit(hook: BeforeCommit) -> None:
    """Run the hook just before the open transaction commits, for locks that must be held only briefly."""
    _current_hooks().before_commit.append(hook)


def after_commit(hook: AfterCommit) -> None:
    """Run the hook after the open transaction commits, for effects that cannot be rolled back."""
    _current_hooks().after_commit.append(hook)


def _current_hooks() -> _TransactionHooks:
    hooks = _current.get()
    assert hooks is not None, "no transaction is open"
    return hooks


@contextmanager
def _translate_role_errors(role: str) -> Generator[None]:
    try:
        yield
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as error:
        raise SchemaVersionError(
            f"The database user may not use the role {role}: {error}.",
            hint=f"Ask the database owner to run `grant {role} to` that user.",
        ) from error


async def begin(tx: Tx, agent: UUID | None, *, snapshot: bool = False) -> None:
    """Begin a transaction in the scope of one agent by row level security, or of the queue when `agent` is None.

    Raises SchemaVersionError when the user of the connection may not use the role.
    """
    if agent is None:
        role, scope = WORKER_ROLE, WORKER_SCOPE_SQL.format(role=WORKER_ROLE)
    else:
        role, scope = APP_ROLE, AGENT_SCOPE_SQL.format(role=APP_ROLE, agent=UUID(int=agent.int))
    mode = " isolation level repeatable read read only" if snapshot else ""
    with _translate_role_errors(role):
        await tx.execute(f"begin{mode};{scope}")


@asynccontextmanager
async def _transaction_block(tx: Tx, agent: UUID | None, *, snapshot: bool) -> AsyncGenerator[None]:
    end = "rollback"
    try:
        await begin(tx, agent, snapshot=snapshot)
        yield
        end = "commit"
    finally:
        await tx.execute(end)


@asynccontextmanager
async def connect(dsn: str) -> AsyncGenerator[Tx]:
    """Yield one connection outside the pools. Raises DatabaseError when it cannot be made, or fails in the block."""
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


async def _register_vector(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    try:
        await register_vector(connection)
    except ValueError as error:
        raise SchemaVersionError(
            "The database lacks the extension pgvector in the schema public.",
            hint="Run `create extension vector`, or `alter extension vector set schema public`.",
        ) from error


async def _skip_reset(connection: Tx) -> None:
    """Do nothing: all settings end with their transaction, so RESET ALL would be a wasted round trip."""


class Database:
    """Connection pools: one for agents, one for the job queue, and one connection for notifications."""

    def __init__(self, pool: Pool, queue: Pool, listeners: Pool) -> None:
        self._pool, self._queue, self._listeners = pool, queue, listeners

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8, worker: str | None = None) -> "Database":
        """Connect to the database; the queue's pool connects to `worker` on first use. Raises DatabaseError."""
        with translate_connect_errors():
            pool = await _create_pool(dsn, min_size=1, max_size=size)
            queue = await _create_pool(worker or dsn, min_size=0, max_size=WORKER_CONNECTIONS)
            return cls(pool, queue, await _create_pool(dsn, min_size=0, max_size=1))

    async def close(self) -> None:
        """Close the pools; drop the connections of transactions that are still open after a second."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for pool in (self._queue, self._listeners, self._pool):
                    await pool.close()
        except TimeoutError:
            self.terminate()

    def terminate(self) -> None:
        """Drop every connection; pending calls raise DatabaseError."""
        for pool in (self._queue, self._listeners, self._pool):
            pool.terminate()

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """Yield a transaction of one agent; a `snapshot` is read-only and repeatable read. Raises DatabaseError."""
        async with self._run_transaction(self._pool, agent, snapshot=snapshot) as tx:
            yield tx

    @asynccontextmanager
    async def worker_transaction(self) -> AsyncGenerator[Tx]:
        """Yield a transaction that sees only the queue and the names of all agents. Raises DatabaseError."""
        async with self._run_transaction(self._queue, None) as tx:
            yield tx

    @asynccontextmanager
    async def _run_transaction(self, pool: Pool, agent: UUID | None, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert not in_transaction(), "a transaction is already open; pass its connection down"
        hooks = _TransactionHooks([], [])
        previous = _current.set(hooks)
        try:
            async with _acquire(pool) as tx, _transaction_block(tx, agent, snapshot=snapshot):
                yield tx
                for hook in hooks.before_commit:
                    await hook(tx)
        finally:
            _current.reset(previous)
        for then in hooks.after_commit:
            await then()

    async def listen(self, channel: str, on_message: Callable[[str], None]) -> None:
        """Call `on_message` for each notification on the channel until the connection is lost. Raises DatabaseError."""
        lost = asyncio.Event()

        def forward(connection: object, process: int, name: str, payload: object) -> None:
            on_message(str(payload))

        async with _acquire(self._listeners) as listener:
            try:
                listener.add_termination_listener(lambda connection: lost.set())
                await listener.add_listener(channel, forward)
                on_message("")  # notifications sent before LISTEN took effect are lost
                await lost.wait()
            finally:
                await listener.remove_listener(channel, forward)

    async def current_snapshot(self) -> str:
        """Return the server's transaction snapshot. Two equal values mean that no agent wrote in between."""
        async with self.single_statement() as tx:
            return await tx.fetchval(SNAPSHOT_SQL)

    @asynccontextmanager
    async def single_statement(self) -> AsyncGenerator[Tx]:
        """Yield a connection for one statement that needs no agent scope. Raises DatabaseError."""
        async with _acquire(self._pool) as connection:
            with _translate_role_errors(APP_ROLE):
                yield connection

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in a transaction, and retry it after a deadlock or serialization failure.

        `work` may only use the database: other effects of a failed attempt are not undone.
        """
        attempt = 1
        while True:
            try:
                async with self.transaction(agent) as tx:
                    return await work(tx)
            except _TransactionConflictError:
                if attempt == MAX_ATTEMPTS:
                    raise
                await asyncio.sleep(RETRY_SECONDS * attempt)  # avoids a second conflict with the same writer
                attempt += 1


async def _create_pool(dsn: str, *, min_size: int, max_size: int) -> Pool:
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
    """A Database whose transactions are all part of one open transaction. Do not pass it to code that calls a model."""

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert agent == self._agent, "the open transaction belongs to another agent"
        assert not snapshot, "the open transaction may have written already"
        yield self._tx

    async def current_snapshot(self) -> str:
        return await self._tx.fetchval(SNAPSHOT_SQL)


SERVER_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server was shut down, crashed, or cancelled the statement
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # after a failover
)


class _TransactionConflictError(DatabaseError):
    """A deadlock or serialization failure: the transaction was rolled back and can be retried."""


@contextmanager
def translate_connect_errors() -> Generator[None]:
    """Translate connection failures to DatabaseError, without the connection string: it may contain the password."""
    try:
        yield
    except (ValueError, OverflowError):  # asyncpg accepts any number as a port
        raise DatabaseError(
            "DATABASE_URL, or a PG… environment variable, is invalid.",
            hint="Write postgresql://user:password@host:5432/name; in a password @ is %40, : %3A, / %2F, # %23, ? %3F.",
        ) from None
    except TimeoutError as error:
        raise _unreachable_error(f"no answer within {CONNECT_SECONDS} seconds") from error
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise _unreachable_error(str(error)) from error


@contextmanager
def translate_errors(tx: Tx) -> Generator[None]:
    """Translate server and connection failures to DatabaseError; errors of the statement itself pass through."""
    try:
        yield
    except TimeoutError as error:
        raise DatabaseError(
            f"The database did not finish a statement within {STATEMENT_SECONDS} seconds.",
            hint="It is overloaded, or another session holds a lock (see pg_stat_activity); try again later.",
        ) from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        what = "The transaction conflicted with another writer and was rolled back."
        raise _TransactionConflictError(what, hint="Try again.") from error
    except (OSError, *SERVER_ERRORS) as error:
        raise _failure_error(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        if _is_closed(tx):
            raise _failure_error("it closed the connection") from error
        raise


@contextmanager
def reject_invalid_rows(label: str) -> Generator[None]:
    """Translate constraint violations of imported rows to InputError."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedTableError) as error:
        hint = "Nothing was stored. Check that both databases have the same version."
        raise InputError(f"{label}: {error}.", hint=hint) from error


def _is_closed(tx: Tx) -> bool:
    try:
        return tx.is_closed()
    except asyncpg.InterfaceError:  # the pool has already released it
        return True


def _failure_error(reason: str) -> DatabaseError:
    hint = "Check that PostgreSQL runs and has free disk space, then try again."
    return DatabaseError(f"The database failed: {reason}.", hint=hint)


def _unreachable_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database cannot be reached: {reason.strip() or 'it closed the connection'}.",
        hint="Check DATABASE_URL and that PostgreSQL runs there; unset it to use the embedded server.",
    )
