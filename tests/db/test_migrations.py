"""The schema comes to a database in order, once, and whole or not at all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from newton.content.package_data import data_folder
from newton.db.connection import prepare_database
from newton.db.migrations import LOCK_KEY, SchemaMigration, find_pending, migrate, read_migrations
from newton.db.pool import Tx
from newton.errors import SchemaVersionError
from tests.cluster import on
from tests.support import until

WANTED = read_migrations(data_folder("schema"))


@pytest.fixture
async def empty(server: str) -> AsyncIterator[str]:
    """A database without anything in it."""
    name = f"newton_empty_{uuid4().hex[:8]}"
    admin = await asyncpg.connect(server)
    await admin.execute(f"create database {name}")
    yield on(server, name)
    await admin.execute(f"drop database {name} with (force)")
    await admin.close()


@pytest.fixture
async def conn(empty: str) -> AsyncIterator[Tx]:
    connection = await asyncpg.connect(empty)
    yield connection
    await connection.close()


async def applied(conn: Tx) -> list[str]:
    rows = await conn.fetch("select name from runtime.schema_migrations order by name")
    return [row["name"] for row in rows]


async def test_each_file_applies_once_in_order_and_no_edited_or_unknown_one_is_taken(conn: Tx) -> None:
    for upto in range(1, len(WANTED) + 1):
        assert await migrate(conn, WANTED[:upto]) == [WANTED[upto - 1].name]
    assert await applied(conn) == [migration.name for migration in WANTED]
    stamps = await conn.fetch("select * from runtime.schema_migrations order by name")
    assert await migrate(conn, WANTED) == []
    assert await conn.fetch("select * from runtime.schema_migrations order by name") == stamps
    new = SchemaMigration("9000_new.sql", "select 1")
    edited = SchemaMigration(WANTED[0].name, WANTED[0].sql + "\n-- more")
    with pytest.raises(SchemaVersionError, match=f"{WANTED[0].name} was edited"):
        await migrate(conn, [edited, *WANTED[1:], new])
    assert await applied(conn) == [migration.name for migration in WANTED]
    assert await migrate(conn, [*WANTED, new]) == [new.name]
    before = await conn.fetch("select oid, xmin from pg_class order by oid")
    with pytest.raises(SchemaVersionError, match=r"version of Newton: it has the migration 9000_new\.sql"):
        await migrate(conn, WANTED)
    assert await conn.fetch("select oid, xmin from pg_class order by oid") == before


async def test_a_broken_migration_leaves_nothing_of_any_file(conn: Tx) -> None:
    broken = [
        SchemaMigration("0001_good.sql", "create table good (id int)"),
        SchemaMigration("0002_bad.sql", "create table bad ("),
    ]
    with pytest.raises(SchemaVersionError, match=r"0002_bad\.sql failed"):
        await migrate(conn, broken)
    assert await conn.fetchval("select to_regclass('good')") is None
    assert await conn.fetchval("select to_regnamespace('runtime')") is None
    assert await migrate(conn, broken[:1]) == ["0001_good.sql"]


@pytest.mark.slow
async def test_of_two_migrators_at_once_one_applies_and_the_other_waits(empty: str) -> None:
    one, two, holder = [await asyncpg.connect(empty) for _ in range(3)]
    try:
        await holder.execute("select pg_advisory_lock($1)", LOCK_KEY)
        runs = [asyncio.create_task(migrate(conn, WANTED)) for conn in (one, two)]
        await both_wait(holder)
        await holder.execute("select pg_advisory_unlock($1)", LOCK_KEY)
        done = await asyncio.gather(*runs)
    finally:
        for conn in (one, two, holder):
            await conn.close()
    assert sorted(done, key=len) == [[], [migration.name for migration in WANTED]]


async def both_wait(holder: Tx) -> None:
    async def waiting() -> bool:
        query = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        return await holder.fetchval(query) >= 2

    await until(waiting)


@pytest.mark.slow
async def test_two_databases_of_one_server_migrate_at_once(server: str) -> None:
    """Roles belong to the server: each database has its own."""
    admin = await asyncpg.connect(server)
    names = [f"newton_pair_{uuid4().hex[:8]}" for _ in range(3)]
    try:
        for name in names:
            await admin.execute(f"create database {name}")
        done = await asyncio.gather(
            *(prepare_database(on(server, name), schema=data_folder("schema")) for name in names)
        )
    finally:
        for name in names:
            await admin.execute(f"drop database if exists {name} with (force)")
        await admin.close()
    assert [len(one.migrations) for one in done] == [len(WANTED)] * 3


def test_only_numbered_files_are_migrations_and_they_come_in_order_without_a_gap(tmp_path: Path) -> None:
    for name in ("0010_c.sql", "0002_b.sql", "0001_a.sql", "notes.sql", "0003_x.txt"):
        (tmp_path / name).write_text(f"-- {name}\n")
    assert [migration.name for migration in read_migrations(tmp_path)] == ["0001_a.sql", "0002_b.sql", "0010_c.sql"]
    numbers = [int(migration.name[:4]) for migration in WANTED]
    assert numbers == list(range(1, len(WANTED) + 1))
    first, second = SchemaMigration("0001_a.sql", "a"), SchemaMigration("0002_b.sql", "b")
    assert find_pending({}, [first, second]) == [first, second]
    assert find_pending({first.name: first.sha256}, [first, second]) == [second]
