"""One database for every test of a process that commits: each finds it as the migrations left it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import asyncpg

from newton.db.pool import Database, Tx
from tests.cluster import connection, list_nodes
from tests.support import until

# To make a database of its own for each test takes fifty times as long as to empty one.
FILLED = """
select c.oid::regclass::text as name, pg_total_relation_size(c.oid) > 1000000 as large
from pg_class as c
where c.relkind = 'r' and pg_relation_size(c.oid) > 0
    and c.relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema', 'citus', 'columnar_internal')
"""
# VACUUM notes down that there is nothing in a table. The plans that come of this take minutes where there is much.
UNKNOWN = """
select pg_clear_relation_stats(c.relnamespace::regnamespace::text, c.relname::text)
from pg_class as c where c.oid = $1::text::regclass
"""
# What is done to the schema would meet the tests that follow.
FIXED = """
create function public.refuse() returns event_trigger language plpgsql as $$
begin
    raise exception 'this database is for every test: change the schema of a `clone`';
end $$;
create event trigger fixed on ddl_command_start execute function public.refuse();
"""
CUT = """
select pg_terminate_backend(pid, 10000)
from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""
# No trigger and no foreign key stops who has these. A test that left a transaction open is in the way, and fails.
FREE = {"session_replication_role": "replica", "lock_timeout": "10s"}
LAST_SECONDS = 3.0  # for what a test has just left to end, such as a query that was cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The database, with connections that are used again, for to open one takes as long as most tests.

    `workers` are the connection strings of the other nodes of a cluster.
    """

    dsn: str
    db: Database
    owner: Tx
    workers: tuple[str, ...]

    @property
    def is_idle(self) -> bool:
        pool = self.db._pool  # pyright: ignore[reportPrivateUsage]  # whether a test has left one of them at work
        return pool.get_idle_size() == pool.get_size()

    async def empty(self) -> None:
        """Delete every row but the names of the migrations. Fails afterwards if the test left a transaction open."""
        is_idle = await self.become_idle()
        if not is_idle:
            await self.disconnect()
        await delete_rows(self.owner, self.workers)
        assert is_idle, "a unit of work is still open"

    async def disconnect(self) -> None:
        """End every other connection to the database; the pool opens new ones."""
        await self.owner.execute(CUT)
        assert await self.become_idle(seconds=60)

    async def become_idle(self, *, seconds: float = LAST_SECONDS) -> bool:
        """Whether all connections are at rest before long: a stream that a client left is undone after its request."""

        async def is_idle() -> bool:
            return self.is_idle

        with suppress(TimeoutError):
            await until(is_idle, seconds=seconds)
        return self.is_idle


async def delete_rows(owner: Tx, workers: tuple[str, ...]) -> None:
    """Delete the rows on each server; on a cluster they are in the shards of its nodes."""
    await delete_local_rows(owner)
    for node in workers:
        async with connection(node, **FREE, **{"citus.enable_manual_changes_to_shards": "on"}) as worker:
            await delete_local_rows(worker)


async def delete_local_rows(owner: Tx) -> None:
    filled = [row for row in await owner.fetch(FILLED) if row["name"] != "runtime.schema_migrations"]
    if filled:
        await owner.execute("".join(f"delete from {row['name']};" for row in filled))
    for row in filled:
        if row["large"]:
            await owner.execute(f"vacuum {row['name']}")
            if owner.get_server_version().major >= 18:  # which has such a function
                await owner.execute(UNKNOWN, row["name"])


@dataclass(frozen=True, slots=True)
class Lent:
    """Databases for those who need one of their own for a while: one that comes back is emptied and lent again."""

    make: Callable[[], Awaitable[str]]
    free: list[str] = field(default_factory=list[str])

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[str]:
        dsn = self.free.pop() if self.free else await self._make()
        yield dsn
        owner = await asyncpg.connect(dsn, server_settings=FREE)
        await owner.execute(CUT)
        await delete_rows(owner, (await list_nodes(dsn))[1:])
        await owner.close()
        self.free.append(dsn)

    async def _make(self) -> str:
        dsn = await self.make()
        owner = await asyncpg.connect(dsn)
        await owner.execute(FIXED)
        await owner.close()
        return dsn


@asynccontextmanager
async def without_leftovers() -> AsyncGenerator[None]:
    """Cancel the tasks that a test has left, and wait for them: no one meets the emptied database or the next test."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=10)


@asynccontextmanager
async def opened(dsn: str) -> AsyncGenerator[Common]:
    """That database, whose schema nobody may change from here on."""
    owner = await asyncpg.connect(dsn, server_settings=FREE)
    await owner.execute(FIXED)
    db = await Database.open(dsn, size=4)
    yield Common(dsn=dsn, db=db, owner=owner, workers=(await list_nodes(dsn))[1:])
    await db.close()
    await owner.close()
