"""Transactions commit whole or not at all; database errors become named errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest

from newton.content.package_data import data_folder
from newton.db import requirements
from newton.db.connection import prepare_database
from newton.db.driver import ARRAYS, register_types
from newton.db.pool import Database, Tx, connect
from newton.errors import DatabaseError, SchemaVersionError
from tests.cluster import count_lock_waits, on
from tests.emptied import FREE
from tests.support import ANA, until


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[Tx]:
    """The owner of the test's database, who has made a table for whoever wants to write."""
    conn = await asyncpg.connect(dsn, server_settings=FREE)
    await conn.execute("create table public.slots (slot integer primary key, taken integer not null default 0)")
    await conn.execute("insert into public.slots values (1), (2)")
    await conn.execute("grant select, update on public.slots to public")
    yield conn
    await conn.execute("drop table public.slots")
    await conn.close()


@pytest.fixture
async def stranger(server: str) -> AsyncIterator[str]:
    """A user of the server who owns nothing: name and password."""
    name = f"newton_stranger_{uuid4().hex[:8]}"
    admin = await asyncpg.connect(server)
    await admin.execute(f"create role {name} login password 'secret'")
    yield f"{name}:secret"
    await admin.execute(f"drop owned by {name}")
    await admin.execute(f"drop role {name}")
    await admin.close()


async def end(tx: Tx, *, by: Tx) -> None:
    """The server ends the connection, and its client has heard of it."""
    await by.execute("select pg_terminate_backend($1::int)", tx.get_server_pid())

    async def closed() -> bool:
        with suppress(asyncpg.InterfaceError):  # the pool has taken it away
            return tx.is_closed()
        return True

    await until(closed)


async def test_a_connection_that_ends_between_two_statements_is_a_failure_of_the_database(
    db: Database, owner: Tx
) -> None:
    with pytest.raises(DatabaseError, match="The database failed: the server closed the connection"):
        async with db.transaction(ANA) as tx:
            await end(tx, by=owner)
            await tx.execute("select 1")
    async with db.transaction(ANA) as tx:
        assert await tx.fetchval("select 1") == 1, "the next one gets a new connection"


async def test_a_commit_after_a_failed_statement_is_no_success(db: Database, owner: Tx) -> None:
    with pytest.raises(DatabaseError, match="nothing was stored"):
        async with db.transaction(ANA) as tx:
            await tx.execute("update public.slots set taken = 1")
            with suppress(asyncpg.UndefinedTableError):
                await tx.execute("select * from none")
    assert await owner.fetchval("select sum(taken) from public.slots") == 0


async def test_a_connection_that_ends_in_a_statement_is_a_failure_of_the_database(db: Database, owner: Tx) -> None:
    async def ended() -> None:
        async with db.transaction(ANA) as tx:
            await tx.execute("select pg_sleep(60)")

    sleeping = asyncio.create_task(ended())

    async def asleep() -> bool:
        query = "select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event = 'PgSleep'"
        return await owner.fetchval(f"{query} and datname = current_database()") == 1

    await until(asleep)
    with pytest.raises(DatabaseError, match="The database failed: "):
        await sleeping


async def test_a_statement_that_is_cancelled_says_so(db: Database) -> None:
    with pytest.raises(DatabaseError, match="did not finish a statement within 60 seconds") as slow:
        async with db.transaction(ANA) as tx:
            await tx.execute("select pg_sleep(60)", timeout=0.01)
    assert "pg_stat_activity" in slow.value.hint
    # a statement that the server cancels says so
    with pytest.raises(DatabaseError, match="failed: canceling statement due to statement timeout"):
        async with db.transaction(ANA) as tx:
            await tx.execute("set local statement_timeout = 1")
            await tx.execute("select pg_sleep(60)")
    with pytest.raises(asyncpg.InterfaceError, match="expects 1 argument"):
        async with db.transaction(ANA) as tx:
            await tx.fetch("select $1::integer")


async def take(tx: Tx, slot: int) -> None:
    await tx.execute("update public.slots set taken = taken + 1 where slot = $1", slot)


async def test_of_two_writers_that_wait_for_each_other_one_begins_again(db: Database, owner: Tx) -> None:
    both = asyncio.Barrier(2)
    attempts: list[int] = []

    async def cross(first: int, second: int) -> int:
        async def work(tx: Tx) -> int:
            attempts.append(first)
            await take(tx, first)
            if len(attempts) <= 2:
                await both.wait()
            await take(tx, second)
            return first

        return await db.run_with_retry(ANA, work)

    assert await asyncio.gather(cross(1, 2), cross(2, 1)) == [1, 2]
    assert len(attempts) == 3
    assert [row["taken"] for row in await owner.fetch("select taken from public.slots")] == [2, 2]


async def test_a_unit_that_is_not_begun_again_says_that_nothing_was_kept(db: Database, owner: Tx) -> None:
    async def crossed() -> None:
        async with db.transaction(ANA) as tx:
            await take(tx, 1)
            await take(tx, 2)

    await owner.execute("set deadlock_timeout = '30s'")  # so that it is the other whom the database undoes
    other = owner.transaction()
    await other.start()
    await take(owner, 2)
    work = asyncio.create_task(crossed())

    async def waits() -> bool:
        return await count_lock_waits(owner) == 1

    await until(waits)
    await take(owner, 1)
    with pytest.raises(DatabaseError, match="was rolled back"):
        await work
    await other.rollback()
    assert [row["taken"] for row in await owner.fetch("select taken from public.slots")] == [0, 0]


async def test_who_may_not_make_the_schema_is_told_what_it_takes(server: str, stranger: str) -> None:
    name = f"newton_bare_{uuid4().hex[:8]}"
    admin = await asyncpg.connect(server)
    await admin.execute(f"create database {name}")
    try:
        with pytest.raises(SchemaVersionError, match="may not create schemas in the database") as refused:
            await prepare_database(on(server, name, user=stranger), schema=data_folder("schema"))
    finally:
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()
    assert "newton db requirements" in refused.value.hint


async def test_who_does_not_own_a_migrated_database_is_told_what_it_takes(dsn: str, stranger: str) -> None:
    mine = on(dsn, urlsplit(dsn).path[1:], user=stranger)
    with pytest.raises(SchemaVersionError, match="may not create the schema: permission denied for schema runtime"):
        await prepare_database(mine, schema=data_folder("schema"))


async def test_who_may_not_be_the_application_is_told_who_can_change_that(dsn: str, stranger: str) -> None:
    database = await Database.open(on(dsn, urlsplit(dsn).path[1:], user=stranger))
    try:
        with pytest.raises(SchemaVersionError, match="may not work as the role of the application") as refused:
            async with database.transaction(ANA):
                pass
    finally:
        await database.close()
    assert "newton db requirements" in refused.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ana:s3cr#et@127.0.0.1:9/none",
        "postgresql://ana:s3cr/et@127.0.0.1:9/none",
        "postgresql://ana:s3cr?et@127.0.0.1:9/none",
        "postgresql://ana:s3cr@et@127.0.0.1:9/none",
        "postgresql://ana:s3cr[et@127.0.0.1:9/none",
        "postgresql://ana:s3cret@127.0.0.1:99999/none",
        "postgresql://ana:s3cret@127.0.0.1:9/none?sslmode=s3cret",
        "s3cret://ana@127.0.0.1:9/none",
        f"postgresql://ana:x@{'s3cret' * 20}:9/none",
    ],
)
async def test_no_part_of_an_unusable_address_is_repeated(url: str) -> None:
    for opening in (prepare_database(url, schema=data_folder("schema")), Database.open(url)):
        with pytest.raises(DatabaseError) as refused:
            await opening
        assert "s3c" not in f"{refused.value} {refused.value.__cause__}"
        assert "DATABASE_URL" in str(refused.value)


async def test_a_database_that_knows_only_ascii_is_noticed(server: str, db: Database) -> None:
    async with db.transaction(ANA) as tx:
        assert (await requirements.read_server_info(tx)).utf8
    name = f"newton_ascii_{uuid4().hex[:8]}"
    admin = await asyncpg.connect(server)
    await admin.execute(f"create database {name} template template0 encoding 'UTF8' locale 'C'")
    conn = await asyncpg.connect(on(server, name))
    try:
        await conn.execute("create extension vector")
        assert not (await requirements.read_server_info(conn)).utf8
    finally:
        await conn.close()
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()


@pytest.mark.parametrize(
    "statement", ["prepare", "deallocate"], ids=["a statement of another client", "a statement of another server"]
)
async def test_a_pooler_in_transaction_mode_is_named(server: str, statement: str) -> None:
    # as it answers: statements of one client are prepared on the server that another one uses, or are not there
    with pytest.raises(DatabaseError, match="A connection pooler in transaction mode") as refused:
        async with connect(server) as conn:
            await conn.execute(f"{statement} held{' as select 1' if statement == 'prepare' else ''}")
            await conn.execute("prepare held as select 1")
    assert "session mode" in refused.value.hint


async def test_arrays_are_read_without_a_question_about_their_types(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await register_types(connection)
    asked: list[str] = []
    connection.add_query_logger(lambda record: asked.append(record.query))
    for name, (oid, _) in ARRAYS.items():
        query = f"select array[null, $1]::{name}[], $2::{name}[], '{name}[]'::regtype::oid"
        assert await connection.fetchrow(query, None, [None]) == ([None, None], [None], oid)
    await connection.close()
    assert len(asked) == len(ARRAYS)


@pytest.mark.one_server("every database of a cluster has the extension")
async def test_a_database_without_pgvector_is_refused_with_the_statement_that_adds_it(server: str) -> None:
    connection = await asyncpg.connect(server)
    with pytest.raises(SchemaVersionError, match="pgvector") as refused:
        await register_types(connection)
    await connection.close()
    assert "create extension vector" in str(refused.value.hint)
