"""Connections and units of work. Whoever opens one owns it; stores take it and never begin or commit."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

import asyncpg
from pgvector.asyncpg import register_vector

from newton.concurrency import within
from newton.errors import DatabaseError, InputError, SchemaError

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# What a store takes: a connection on which its caller has begun a unit of work.
Tx: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

APP_ROLE, WORKER_ROLE = "newton_app", "newton_worker"
# A statement without arguments, so that it can go to the server in one message with the one that begins the work.
SCOPE = """
select
    set_config('role', '{role}', true),
    set_config('newton.agent_id', '{agent}', true),
    set_config('random_page_cost', '1.1', true),
    set_config('enable_mergejoin', 'off', true)
"""
ACROSS = "select set_config('role', '{role}', true)"
MOMENT = "select pg_current_snapshot()::text"
CONNECT_SECONDS, STATEMENT_SECONDS, CLOSE_SECONDS = 10, 60, 1
WORKERS = 3  # connections to the queue: one claims, one renews, one is spare. They wait for nobody else's work.
ATTEMPTS, PAUSE = 3, 0.05  # at a unit of work that may be done again, and the seconds after the first

T = TypeVar("T")

Last = Callable[[Tx], Awaitable[None]]
Then = Callable[[], Awaitable[None]]


class _Unit(NamedTuple):
    """What is still to be done of a unit of work: as the last thing in it, and when it has landed."""

    last: list[Last]
    then: list[Then]


_inside: ContextVar[_Unit | None] = ContextVar("newton_unit_of_work", default=None)


def in_unit_of_work() -> bool:
    """Whether a transaction is open here. No model is asked while one is."""
    return _inside.get() is not None


def at_the_end(last: Last) -> None:
    """Has that done as the last thing of the unit of work that is open here: for what others have to wait for."""
    _open().last.append(last)


def once_landed(then: Then) -> None:
    """Has that done when the unit of work that is open here has landed: for what could not be undone with it."""
    _open().then.append(then)


def _open() -> _Unit:
    unit = _inside.get()
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
    await _begin_as(tx, APP_ROLE, SCOPE.format(role=APP_ROLE, agent=UUID(int=agent.int)), mode=mode)


async def _begin_as(tx: Tx, role: str, scope: str, *, mode: str = "") -> None:
    with _permitted(role):
        await tx.execute(f"begin{mode};{scope}")


@contextmanager
def _permitted(role: str) -> Generator[None]:
    try:
        yield
    except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as error:
        raise SchemaError(
            f"The database user may not work as {role}: {error}.",
            hint=f"Let the owner of the database run `grant {role} to` that user.",
        ) from error


@asynccontextmanager
async def _begun(tx: Tx, agent: UUID | None, *, snapshot: bool) -> AsyncGenerator[None]:
    end = "rollback"
    try:
        if agent is None:
            await _begin_as(tx, WORKER_ROLE, ACROSS.format(role=WORKER_ROLE))
        else:
            await begin(tx, agent, snapshot=snapshot)
        yield
        end = "commit"
    finally:
        await tx.execute(end)


async def _vectors(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    try:
        await register_vector(connection)
    except ValueError as error:
        raise SchemaError(
            "The database has no pgvector in its schema public.",
            hint="Run `create extension vector`, or `alter extension vector set schema public`.",
        ) from error


async def _nothing_to_reset(connection: Tx) -> None:
    """Every setting made here ends with its transaction; the usual RESET ALL would cost a round trip each time."""


class Database:
    def __init__(
        self,
        pool: "asyncpg.Pool[asyncpg.Record]",
        queue: "asyncpg.Pool[asyncpg.Record]",
        ears: "asyncpg.Pool[asyncpg.Record]",
    ) -> None:
        self._pool, self._queue, self._ears = pool, queue, ears

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8, worker: str | None = None) -> "Database":
        """Connects. `worker` is for a user of its own that sees the queue; no connection is made with it before it is
        needed. Raises DatabaseError when the server does not answer within ten seconds."""
        with connecting():
            pool = await _pool(dsn, least=1, most=size)
            queue = await _pool(worker or dsn, least=0, most=WORKERS)
            return cls(pool, queue, await _pool(dsn, least=0, most=1))

    async def close(self) -> None:
        """Waits a moment for what is begun; then it is dropped, as by a server that says nothing any more."""
        try:
            await within(self._closed(), seconds=CLOSE_SECONDS)
        except TimeoutError:
            self.terminate()

    async def _closed(self) -> None:
        await self._queue.close()
        await self._ears.close()
        await self._pool.close()

    def terminate(self) -> None:
        """Drops every connection; whoever waits for an answer gets a DatabaseError."""
        self._queue.terminate()
        self._ears.terminate()
        self._pool.terminate()

    @asynccontextmanager
    async def work(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        """One unit of work in one agent's scope: all of it lands, or none of it. A `snapshot` only reads, and all of it
        as it was at one moment.

        Raises DatabaseError when the database fails to do it, or chose it to end a deadlock.
        """
        async with self._unit(self._pool, agent, snapshot=snapshot) as tx:
            yield tx

    @asynccontextmanager
    async def across(self) -> AsyncGenerator[Tx]:
        """One unit of work on the queue and the names of all agents, as a role to which there is nothing else. Raises
        DatabaseError as `work` does."""
        async with self._unit(self._queue, None) as tx:
            yield tx

    @asynccontextmanager
    async def _unit(
        self, pool: "asyncpg.Pool[asyncpg.Record]", agent: UUID | None, *, snapshot: bool = False
    ) -> AsyncGenerator[Tx]:
        assert not in_unit_of_work(), "a unit of work is already open; pass its connection down"
        unit = _Unit([], [])
        mark = _inside.set(unit)
        try:
            with connecting():
                tx = await pool.acquire()
            try:
                with working(tx):
                    async with _begun(tx, agent, snapshot=snapshot):
                        yield tx
                        for last in unit.last:
                            await last(tx)
            finally:
                await pool.release(tx)
        finally:
            _inside.reset(mark)
        for then in unit.then:
            await then()

    async def listen(self, channel: str, heard: Callable[[str], None]) -> None:
        """Hears what any process tells on a channel, over a connection of its own, until that is lost. Raises
        DatabaseError when there is none to be had."""
        lost = asyncio.Event()

        def hear(connection: object, process: int, name: str, said: object) -> None:
            heard(str(said))

        with connecting():
            ear = await self._ears.acquire()
        try:
            with working(ear):
                ear.add_termination_listener(lambda connection: lost.set())
                await ear.add_listener(channel, hear)
                heard("")  # what was told before that was not heard
                await lost.wait()
        finally:
            with working(ear):
                await ear.remove_listener(channel, hear)
            await self._ears.release(ear)

    async def moment(self) -> str:
        """Which transactions have ended by now, of whatever agent: with the same answer twice nobody has written in
        between. It reads no rows, so it is in nobody's scope. Raises DatabaseError as `work` does."""
        async with self.statement() as tx:
            return await tx.fetchval(MOMENT)

    @asynccontextmanager
    async def statement(self) -> AsyncGenerator[Tx]:
        """For one statement that needs no scope or opens its own: a unit of work takes two round trips more. Raises
        DatabaseError as `work` does."""
        with connecting():
            tx = await self._pool.acquire()
        try:
            with working(tx), _permitted(APP_ROLE):
                yield tx
        finally:
            await self._pool.release(tx)

    async def retried(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Such a unit of work, begun again when another writer was in its way. It may do nothing but ask the database:
        of an attempt that failed nothing else is undone."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await self._once(agent, work)
            except _CrossedError:
                await asyncio.sleep(PAUSE * attempt)  # else it could be in the way of the same writer again
        return await self._once(agent, work)

    async def _once(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        async with self.work(agent) as tx:
            return await work(tx)


async def _pool(dsn: str, *, least: int, most: int) -> "asyncpg.Pool[asyncpg.Record]":
    return await asyncpg.create_pool(
        dsn,
        min_size=least,
        max_size=most,
        init=_vectors,
        reset=_nothing_to_reset,
        timeout=CONNECT_SECONDS,
        command_timeout=STATEMENT_SECONDS,
    )


class Joined(Database):
    """The database within a unit of work that is open: whatever is done through it lands with that one, or not at all.

    Nobody who asks a model may be given one.
    """

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def work(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert agent == self._agent, "the unit of work is another agent's"
        assert not snapshot, "what is open may have written already"
        yield self._tx

    async def moment(self) -> str:
        return await self._tx.fetchval(MOMENT)

    async def retried(self, agent: UUID, work: Callable[[Tx], Awaitable[T]]) -> T:
        async with self.work(agent) as tx:
            return await work(tx)


FAILURES = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it was shut down, has crashed, or cancelled the statement
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # another server has taken over
)


class _CrossedError(DatabaseError):
    """Two units of work waited for each other; the database undid this one. Doing it again is safe."""


@contextmanager
def connecting() -> Generator[None]:
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
        raise _unreachable(f"no answer within {CONNECT_SECONDS} seconds") from error
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise _unreachable(str(error)) from error


@contextmanager
def working(tx: Tx) -> Generator[None]:
    """Whatever makes the server fail in the middle of work, as a DatabaseError; not what is wrong with a statement."""
    try:
        yield
    except TimeoutError as error:
        raise DatabaseError(
            f"The database did not finish a statement within {STATEMENT_SECONDS} seconds.",
            hint="It is overloaded, or somebody holds a lock there (see pg_stat_activity); try again then.",
        ) from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        raise _CrossedError(
            "Another writer was in the way, and nothing of this was kept.", hint="Do it again when that one is done."
        ) from error
    except (OSError, *FAILURES) as error:
        raise _failed(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        if _ended(tx):
            raise _failed("it ended the connection") from error
        raise


@contextmanager
def refusing(what: str) -> Generator[None]:
    """Rows from outside that break a rule of the schema, as an InputError."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedTableError) as error:
        raise InputError(f"{what}: {error}.", hint="Nothing was kept. See that both are of one version.") from error


def _ended(tx: Tx) -> bool:
    try:
        return tx.is_closed()
    except asyncpg.InterfaceError:  # the pool has taken it away already
        return True


def _failed(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database failed: {reason}.", hint="See that PostgreSQL runs and has room on its disk, then try again."
    )


def _unreachable(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database cannot be reached: {reason.strip() or 'it closed the connection'}.",
        hint="Check DATABASE_URL and that PostgreSQL runs there; unset it to use the embedded server.",
    )
