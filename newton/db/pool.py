"""Connections and units of work. Whoever opens one owns it; stores take it and never begin or commit."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

import asyncpg
from pgvector.asyncpg import register_vector

from newton.errors import DatabaseError

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

# What a store takes: a connection on which its caller has begun a unit of work.
Tx: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

APP_ROLE = "newton_app"
SCOPE = """
select
    set_config('role', $1, true),
    set_config('newton.agent_id', $2, true),
    set_config('random_page_cost', '1.1', true)
"""
STATEMENT_SECONDS = 60

_inside: ContextVar[bool] = ContextVar("newton_inside_unit_of_work", default=False)


def in_unit_of_work() -> bool:
    """Whether a transaction is open here. No model is asked while one is."""
    return _inside.get()


async def set_scope(tx: Tx, agent: UUID) -> None:
    """From here to the end of the transaction only this agent's rows exist, whatever SQL is run.

    The planner is told that pages are in memory: the default takes an index for a disk seek and, where one agent has
    most of the rows, reads the whole table instead of the covering index, at twice the time.
    """
    await tx.execute(SCOPE, APP_ROLE, str(agent))


async def _nothing_to_reset(connection: Tx) -> None:
    """Every setting made here ends with its transaction; the usual RESET ALL would cost a round trip each time."""


class Database:
    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool

    @classmethod
    async def open(cls, dsn: str, *, size: int = 8) -> "Database":
        """Connects. Raises DatabaseError when the server does not answer within ten seconds."""
        try:
            pool = await asyncpg.create_pool(
                dsn,
                min_size=1,
                max_size=size,
                init=register_vector,
                reset=_nothing_to_reset,
                timeout=10,
                command_timeout=STATEMENT_SECONDS,
            )
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise unreachable(error) from error
        return cls(pool)

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def work(self, agent: UUID) -> AsyncGenerator[Tx]:
        """One unit of work in one agent's scope: all of it lands, or none of it."""
        assert not in_unit_of_work(), "a unit of work is already open; pass its connection down"
        mark = _inside.set(True)
        try:
            async with self._pool.acquire() as tx, tx.transaction():
                await set_scope(tx, agent)
                yield tx
        except (OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError) as error:
            raise unreachable(error) from error
        finally:
            _inside.reset(mark)


def unreachable(error: BaseException) -> DatabaseError:
    """The database failed to answer, in words that help and carry no password."""
    reason = str(error).strip() or type(error).__name__
    return DatabaseError(
        f"The database cannot be reached: {reason}.",
        hint="Check DATABASE_URL and that PostgreSQL runs there; unset it to use the embedded server.",
    )
