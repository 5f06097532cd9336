"""One database for every test of a process that commits: each finds it as the migrations left it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from newton.db.pool import Database, Tx

# To make a database of its own for each test takes fifty times as long as to empty one.
FILLED = """
select c.oid::regclass::text as name, pg_total_relation_size(c.oid) > 1_000_000 as large
from pg_class as c
where c.relkind = 'r' and pg_relation_size(c.oid) > 0
    and c.relnamespace::regnamespace::text not in ('pg_catalog', 'information_schema')
"""
# What is done to the schema would meet the tests that follow.
FIXED = """
create function public.refuse() returns event_trigger language plpgsql as $$
begin
    raise exception 'this database is for every test: change the schema of a `clone`';
end $$;
create event trigger fixed on ddl_command_start execute function public.refuse();
"""
# No trigger and no foreign key stops who has these. A test that left a transaction open is in the way, and fails.
FREE = {"session_replication_role": "replica", "lock_timeout": "10s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """The database, with connections that are used again, for to open one takes as long as most tests."""

    dsn: str
    db: Database
    owner: Tx

    async def empty(self) -> None:
        """Deletes every row but the names of the migrations."""
        pool = self.db._pool  # pyright: ignore[reportPrivateUsage]  # whether a test has left one of them at work
        assert pool.get_idle_size() == pool.get_size(), "a unit of work is still open"
        filled = [row for row in await self.owner.fetch(FILLED) if row["name"] != "runtime.schema_migrations"]
        if filled:
            await self.owner.execute("".join(f"delete from {row['name']};" for row in filled))
        for row in filled:
            if row["large"]:
                await self.owner.execute(f"vacuum {row['name']}")


@asynccontextmanager
async def opened(dsn: str) -> AsyncGenerator[Common]:
    """That database, whose schema nobody may change from here on."""
    owner = await asyncpg.connect(dsn, server_settings=FREE)
    await owner.execute(FIXED)
    db = await Database.open(dsn, size=4)
    yield Common(dsn=dsn, db=db, owner=owner)
    await db.close()
    await owner.close()
