"""Connections and units of work. Whoever opens one owns it; stores take it and never begin or commit."""

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

# What a store takes: a connection on which its caller has begun a unit of work.
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
WORKER_CONNECTIONS = (
    3  # connections to the queue: one claims, one renews, one is spare. They wait for nobody else's work.
)
MAX_ATTEMPTS, RETRY_SECONDS = 3, 0.05  # at a unit of work that may be done again, and the seconds after the first

T = TypeVar("T")

BeforeCommit = Callable[[Tx], Awaitable[None]]
AfterCommit = Callable[[], Awaitable[None]]


class _TransactionHooks(NamedTuple):
    """What is still to be done of a unit of work: as the last thing in it, and when it has landed."""

    before_commit: list[BeforeCommit]
    after_commit: list[AfterCommit]


_current: ContextVar[_TransactionHooks | None] = ContextVar("newton_unit_of_work", default=None)


def in_transaction() -> bool:
    """Whether a transaction is open here. No model is asked while one is."""
    return _current.get() is not None


def before_commit(hook: BeforeCommit) -> None:
    """Has that done as the last thing of the unit of work that is open here: for what others have to wait for."""
    _current_hooks().before_commit.append(hook)


def after_commit(hook: AfterCommit) -> None:
    """Has that done when the unit of work that is open here has landed: for what could not be undone with it."""
    _current_hooks().after_commit.append(hook)


def _current_hooks() -> _TransactionHooks:
    unit = _current.get()
    assert unit is not None, "no unit of work is open"
    return unit


async def begin(tx: Tx, agent: UUID, *, snapshot: bool = False) -> None:
    """Begins a transaction: to its end only this agent's rows exist, whatever SQL is run. Raises SchemaError when the
    user of the connection may not work as the application's role.

    The planner is told that pages are in memory: the default takes an index for a disk seek and, where one agent has
    most of the rows, reads the whole table instead of the covering index, at twice the time. And it is kept from merge
    joins: of the words of a search it expects many more than there are, and would sort thousands of rows for a few.
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
    """Every setting made here ends with its transaction; the usual RESET ALL would cost a round trip each time."""


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
        """Connects. `worker` is for a user of its own that sees the queue; no connection is made with it before it is
        needed. Raises DatabaseError when the server does not answer within ten seconds."""
        with translate_connect_errors():
            pool = await _create_pool(dsn, min_size=1, max_size=size)
            queue = await _create_pool(worker or dsn, min_size=0, max_size=WORKER_CONNECTIONS)
            return cls(pool, queue, await _create_pool(dsn, min_size=0, max_size=1))

    async def close(self) -> None:
        """Waits a moment for what is begun; then it is dropped, as by a server that says nothing any more."""
        try:
            await with_timeout(self._close_pools(), seconds=CLOSE_SECONDS)
        except TimeoutError:
            self.terminate()

    async def _close_pools(self) -> None:
        await self._queue.close()
        await self._listeners.close()
        await self._pool.close()

    def terminate(self) -> None:
        """Drops every connection; whoever waits for an answer gets a DatabaseError."""
        self._queue.terminate()
        self._listeners.terminate()
        self._pool.terminate()

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """One unit of work in one agent's scope: all of it lands, or none of it. A `snapshot` only reads, and all of it
        as it was at one moment.

        Raises DatabaseError when the database fails to do it, or chose it to end a deadlock.
        """
        async with self._run_transaction(self._pool, agent, snapshot=snapshot) as tx:
            yield tx

    @asynccontextmanager
    async def worker_transaction(self) -> AsyncGenerator[Tx]:
        """One unit of work on the queue and the names of all agents, as a role to which there is nothing else. Raises
        DatabaseError as `work` does."""
        async with self._run_transaction(self._queue, None) as tx:
            yield tx

    @asynccontextmanager
    async def _run_transaction(
        self, pool: "asyncpg.Pool[asyncpg.Record]", agent: UUID | None, *, snapshot: bool = False
    ) -> AsyncGenerator[Tx]:
        assert not in_transaction(), "a unit of work is already open; pass its connection down"
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
        """Hears what any process tells on a channel, over a connection of its own, until that is lost. Raises
        DatabaseError when there is none to be had."""
        lost = asyncio.Event()

        def hear(connection: object, process: int, name: str, said: object) -> None:
            on_message(str(said))

        with translate_connect_errors():
            ear = await self._listeners.acquire()
        try:
            with translate_errors(ear):
                ear.add_termination_listener(lambda connection: lost.set())
                await ear.add_listener(channel, hear)
                on_message("")  # what was told before that was not heard
                await lost.wait()
        finally:
            with translate_errors(ear):
                await ear.remove_listener(channel, hear)
            await self._listeners.release(ear)

    async def current_snapshot(self) -> str:
        """Which transactions have ended by now, of whatever agent: with the same answer twice nobody has written in
        between. It reads no rows, so it is in nobody's scope. Raises DatabaseError as `work` does."""
        async with self.single_statement() as tx:
            return await tx.fetchval(SNAPSHOT_SQL)

    @asynccontextmanager
    async def single_statement(self) -> AsyncGenerator[Tx]:
        """For one statement that needs no scope or opens its own: a unit of work takes two round trips more. Raises
        DatabaseError as `work` does."""
        with translate_connect_errors():
            tx = await self._pool.acquire()
        try:
            with translate_errors(tx), _translate_role_errors(APP_ROLE):
                yield tx
        finally:
            await self._pool.release(tx)

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Such a unit of work, begun again when another writer was in its way. It may do nothing but ask the database:
        of an attempt that failed nothing else is undone."""
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return await self._run_once(agent, work)
            except _TransactionConflictError:
                await asyncio.sleep(RETRY_SECONDS * attempt)  # else it could be in the way of the same writer again
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
    """The database within a unit of work that is open: whatever is done through it lands with that one, or not at all.

    Nobody who asks a model may be given one.
    """

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert agent == self._agent, "the unit of work is another agent's"
        assert not snapshot, "what is open may have written already"
        yield self._tx

    async def current_snapshot(self) -> str:
        return await self._tx.fetchval(SNAPSHOT_SQL)

    async def run_with_retry(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        async with self.transaction(agent) as tx:
            return await work(tx)


SERVER_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it was shut down, has crashed, or cancelled the statement
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # another server has taken over
)


class _TransactionConflictError(DatabaseError):
    """Two units of work waited for each other; the database undid this one. Doing it again is safe."""


@contextmanager
def translate_connect_errors() -> Generator[None]:
    """Whatever keeps Newton from the server, as a DatabaseError. What makes a connection string unusable is not
    repeated: it may be a part of the password."""
    try:
        yield
    except (ValueError, OverflowError):  # a port may be any number
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
    """Whatever makes the server fail in the middle of work, as a DatabaseError; not what is wrong with a statement."""
    try:
        yield
    except TimeoutError as error:
        raise DatabaseError(
            f"The database did not finish a statement within {STATEMENT_SECONDS} seconds.",
            hint="It is overloaded, or somebody holds a lock there (see pg_stat_activity); try again then.",
        ) from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        raise _TransactionConflictError(
            "Another writer was in the way, and nothing of this was kept.", hint="Do it again when that one is done."
        ) from error
    except (OSError, *SERVER_ERRORS) as error:
        raise _failure_error(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        if _is_closed(tx):
            raise _failure_error("it ended the connection") from error
        raise


@contextmanager
def reject_invalid_rows(label: str) -> Generator[None]:
    """Rows from outside that break a rule of the schema, as an InputError."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedTableError) as error:
        raise InputError(f"{label}: {error}.", hint="Nothing was kept. See that both are of one version.") from error


def _is_closed(tx: Tx) -> bool:
    try:
        return tx.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it away already
        return True


def _failure_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database failed: {reason}.", hint="See that PostgreSQL runs and has room on its disk, then try again."
    )


def _unreachable_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database cannot be reached: {reason.strip() or 'it closed the connection'}.",
        hint="Check DATABASE_URL and that PostgreSQL runs there; unset it to use the embedded server.",
    )
