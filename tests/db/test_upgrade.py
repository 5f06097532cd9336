"""What the previous version stored is taken over by this one: a backup is restored and migrated, forward only.

Until the first release the previous version is the present one, whose fixture `scripts/make-fixture` writes.
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from newton import ids
from newton.brain import ledger
from newton.brain.hash_chain import ChainHead
from newton.db.backup import RestoreResult, restore
from newton.db.backup_files import verify_backup
from newton.db.connection import prepare_database
from newton.db.embedded_server import EmbeddedServer
from newton.db.migrations import read_migrations
from newton.db.pool import begin, connect
from newton.errors import SchemaVersionError
from newton.settings import load
from tests.conftest import database
from tests.fixture import BACKUP, SCHEMA, is_stale, read_told
from tests.system.servers import fresh

NEXT = "9000_next.sql"
CHANGES = """
alter table memory.memories add column next_version int not null default 7;
create table memory.next_version (id int primary key);
"""
FACTS = "select coalesce(full_text, summary) as content from memory.memories where agent_id = $1 and kind = 'fact'"


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of the next version."""
    folder = tmp_path / "schema"
    shutil.copytree(SCHEMA, folder)
    (folder / NEXT).write_text(CHANGES)
    return folder


@pytest.fixture(scope="module")
async def restored(server: str, template: str) -> AsyncIterator[tuple[str, RestoreResult]]:
    """A database with what the backup holds."""
    async with database(server, "template0") as dsn:
        yield dsn, await restore(load({"database_url": dsn}, env={}), BACKUP, schema=SCHEMA, replace=False)


def test_the_fixture_is_that_of_the_present_schema() -> None:
    manifest = verify_backup(BACKUP)
    edited = [
        one.name for one in read_migrations(SCHEMA) if manifest.migrations.get(one.name, one.sha256) != one.sha256
    ]
    assert not edited, "restore these files: data folders that have them could not be opened any longer"
    assert not is_stale(manifest), "run scripts/make-fixture: a migration was added"


async def test_a_backup_of_the_previous_version_is_migrated_forward(
    restored: tuple[str, RestoreResult], newer: Path, server: str
) -> None:
    original, done = restored
    assert done.rows == verify_backup(BACKUP).rows
    async with database(server, urlsplit(original).path[1:]) as dsn:
        assert (await prepare_database(dsn, schema=newer)).migrations == [NEXT]
        await assert_kept(dsn)
        before = await catalog(dsn)
        with pytest.raises(SchemaVersionError, match=f"newer than this version of Newton: it has the migration {NEXT}"):
            await prepare_database(dsn, schema=SCHEMA)
        assert await catalog(dsn) == before


@pytest.mark.slow
async def test_a_backup_of_the_previous_version_is_migrated_forward_in_an_embedded_database(
    tmp_path: Path, newer: Path
) -> None:
    for home in homes(tmp_path):
        done = await restore(load({"data_dir": home}, env={}), BACKUP, schema=newer, replace=False)
        assert done.rows == verify_backup(BACKUP).rows
        with EmbeddedServer.start(home) as started:
            await assert_kept(started.dsn("postgres"))


def homes(folder: Path) -> Iterator[Path]:
    with fresh(folder / "home") as home:
        yield home


async def assert_kept(dsn: str) -> None:
    """What the agents had been told is there, changed by the migration, and the chain of decisions is whole."""
    async with connect(dsn) as conn:
        memories = verify_backup(BACKUP).rows["memory.memories"]
        assert await conn.fetchval("select count(*) from memory.memories") == memories
        told = {row["content"] for row in await conn.fetch(FACTS, ids.derive_agent_id("ben"))}
        assert set(read_told().values()) <= told
        assert await conn.fetchval("select distinct next_version from memory.memories") == 7
        for name in ("ana", "ben"):
            await begin(conn, ids.derive_agent_id(name))
            verified = await ledger.verify_chain(conn, agent_id=ids.derive_agent_id(name), external_head=None)
            assert isinstance(verified, ChainHead)
            await conn.execute("rollback")


async def catalog(dsn: str) -> list[asyncpg.Record]:
    async with connect(dsn) as conn:
        return await conn.fetch("select oid, xmin, relname, relfilenode from pg_class order by oid")
