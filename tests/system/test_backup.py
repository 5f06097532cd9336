"""Backups of both kinds of database: made while others write, brought back as they were, refused when damaged."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from newton import ids
from newton.brain import ledger
from newton.brain.hash_chain import ChainHead
from newton.cognition.request import ContextBuildRequest
from newton.content.package_data import data_folder
from newton.db import backup_manifest
from newton.db.backup import create_backup, restore
from newton.db.backup_manifest import FILE_NAME, verify_backup
from newton.db.connection import prepare_database
from newton.db.embedded_server import EmbeddedServer
from newton.db.pool import APP_ROLE, Database
from newton.errors import ConflictError, DatabaseError, InputError, SchemaVersionError
from newton.settings import Settings, load
from tests.conftest import database
from tests.db.world import contexts, live
from tests.support import NOON
from tests.system.servers import base, fresh

pytestmark = pytest.mark.slow

SCHEMA = data_folder("schema")
SAID = "select count(*) from tried"


def settings(home: Path) -> Settings:
    return load({"data_dir": home, "embedding_provider": "none"}, env={})


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home in which ana has lived."""
    with fresh(tmp_path_factory.mktemp("lived") / "home") as home:
        yield home


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Path]:
    with fresh(tmp_path / "other") as home:
        yield home


async def answer(server: EmbeddedServer) -> tuple[str, object]:
    """What ana's memory says, and whether her ledger is whole."""
    db, ana = await Database.open(server.dsn(APP_ROLE), size=4), ids.derive_agent_id("ana")
    bundle = await contexts(db).build(ContextBuildRequest(agent_id=ana, input="where is the kettle?", tokens=500))
    async with db.transaction(ana) as tx:
        whole = await ledger.verify_chain(tx, agent_id=ana, external_head=None)
    await db.close()
    return bundle.text, whole


async def write(dsn: str, stop: asyncio.Event) -> int:
    """Commits row after row, in pairs that are never seen apart."""
    conn, number = await asyncpg.connect(dsn), 0
    while not stop.is_set():
        await conn.execute("insert into tried values ($1), (-$1)", number := number + 1)
    await conn.close()
    return number


@pytest.mark.slow
async def test_a_backup_under_load_is_restored_to_a_state_that_was(lived: Path, other: Path, tmp_path: Path) -> None:
    # R14; figure 9: a backup under load restored into a fresh server answers the same, one flipped byte is refused
    with EmbeddedServer.start(lived) as server:
        owner = server.dsn("postgres")
        await prepare_database(owner, schema=SCHEMA)
        db = await Database.open(server.dsn(APP_ROLE))
        await live(db, "ana")
        await db.close()
        said = await answer(server)
        conn = await asyncpg.connect(owner)
        await conn.execute("create table tried (number bigint primary key)")
        stop = asyncio.Event()
        writing = asyncio.create_task(write(owner, stop))
        before = await conn.fetchval(SAID)
        made = await create_backup(settings(lived), tmp_path / "copy", now=NOON)
        stop.set()
        after = 2 * await writing
        await conn.close()
    assert isinstance(said[1], ChainHead) and said[1].seq > 2
    assert made.rows["memory.memories"] > 20
    damage(tmp_path / "copy")
    done = await restore(settings(other), tmp_path / "copy", schema=SCHEMA, replace=False)
    assert done.rows == made.rows and done.previous_data is None and done.revoked == 1
    with EmbeddedServer.start(other) as server:
        assert await answer(server) == said
        conn = await asyncpg.connect(server.dsn("postgres"))
        count = await conn.fetchval(SAID)
        assert before < count <= after and count % 2 == 0
        assert await conn.fetchval("select sum(number) = 0 and max(number) * 2 = count(*) from tried"), (
            "none is missing"
        )
        await conn.execute("insert into tried values (0)")
        await conn.close()
    await replaced(other, tmp_path / "copy")


def damage(copy: Path) -> None:
    """One changed byte anywhere is found; the copy is whole again afterwards."""
    dice, files = random.Random(14), sorted(path for path in copy.rglob("*") if path.is_file())
    chosen = [
        copy / FILE_NAME,
        copy / "base/backup_manifest",
        *(copy / "base/pg_wal").glob("0*"),
        *dice.sample(files, 8),
    ]
    for path in (path for path in chosen if path.stat().st_size):
        place, bit = dice.randrange(path.stat().st_size), 1 << dice.randrange(8)
        flip(path, place, bit)
        with pytest.raises(InputError, match="damaged"):
            verify_backup(copy)
        flip(path, place, bit)
    (copy / "base" / "stranger").touch()
    with pytest.raises(InputError, match="is not a file of the backup"):
        verify_backup(copy)
    (copy / "base" / "stranger").unlink()
    verify_backup(copy)


def flip(path: Path, place: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        old = file.read(1)[0]
        file.seek(place)
        file.write(bytes([old ^ bit]))


async def replaced(home: Path, copy: Path) -> None:
    """Data that is there stays until somebody says otherwise, and then lies beside."""
    with pytest.raises(ConflictError, match="--replace"):
        await restore(settings(home), copy, schema=SCHEMA, replace=False)
    with EmbeddedServer.start(home), pytest.raises(ConflictError, match="uses the data"):
        await restore(settings(home), copy, schema=SCHEMA, replace=True)
    done = await restore(settings(home), copy, schema=SCHEMA, replace=True)
    assert done.previous_data and (done.previous_data / "PG_VERSION").is_file()
    with EmbeddedServer.start(home) as server:
        conn = await asyncpg.connect(server.dsn("postgres"))
        assert await conn.fetchval("select count(*) from tried where number = 0") == 0
        await conn.close()


async def test_a_backup_that_does_not_work_leaves_what_was_there(
    lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, schema = tmp_path / "copy", tmp_path / "schema"
    with EmbeddedServer.start(lived) as server:
        await prepare_database(server.dsn("postgres"), schema=SCHEMA)
    await create_backup(settings(lived), copy, now=NOON)
    shutil.copytree(SCHEMA, schema)
    (schema / "9000_broken.sql").write_text("create table broken (")  # fails once the backup is in its place
    with EmbeddedServer.start(lived) as server:
        conn = await asyncpg.connect(server.dsn("postgres"))
        await conn.execute("create table later ()")
        await conn.close()
    with pytest.raises(SchemaVersionError, match=r"9000_broken\.sql failed"):
        await restore(settings(lived), copy, schema=schema, replace=True)
    with EmbeddedServer.start(lived) as server:
        conn = await asyncpg.connect(server.dsn("postgres"))
        assert await conn.fetchval("select to_regclass('later')") == "later"
        await conn.close()


async def test_an_external_database_is_dumped_and_loaded_as_a_whole(
    server: str, template: str, db: Database, dsn: str, tmp_path: Path
) -> None:
    ana = await live(db, "ana")
    async with db.transaction(ana) as tx:
        memories = await tx.fetchval("select count(*) from memory.memories")
    made = await create_backup(load({"database_url": dsn}, env={}), tmp_path / "copy", now=NOON)
    async with database(server, "template0") as empty, database(server, template) as used:
        for url, replace in ((empty, False), (used, True)):
            chosen = load({"database_url": url}, env={})
            done = await restore(chosen, tmp_path / "copy", schema=SCHEMA, replace=replace, keep_tokens=replace)
            assert done.revoked == (0 if replace else 1) == await revoked(url)
            assert done.rows == made.rows and done.rows["memory.memories"] == memories
            with pytest.raises(ConflictError, match="--replace"):
                await restore(chosen, tmp_path / "copy", schema=SCHEMA, replace=False)
        flip(tmp_path / "copy" / "dump", 5_000, 1)
        with pytest.raises(InputError, match="damaged"):
            await restore(load({"database_url": used}, env={}), tmp_path / "copy", schema=SCHEMA, replace=True)


async def test_a_backup_of_a_newer_version_is_refused_before_anything_changes(
    lived: Path, dsn: str, tmp_path: Path
) -> None:
    older = tmp_path / "schema"
    shutil.copytree(SCHEMA, older)
    newest = max(older.iterdir())
    newest.unlink()
    with EmbeddedServer.start(lived) as server:
        await prepare_database(server.dsn("postgres"), schema=SCHEMA)
    for number, chosen in enumerate((settings(lived), load({"database_url": dsn}, env={}))):
        copy = tmp_path / f"copy-{number}"
        await create_backup(chosen, copy, now=NOON)
        before = await contents(chosen, dsn)
        with pytest.raises(SchemaVersionError, match=f"The backup is newer .* {newest.name}"):
            await restore(chosen, copy, schema=older, replace=True)
        assert await contents(chosen, dsn) == before


async def contents(chosen: Settings, dsn: str) -> object:
    """What shows that data were replaced: the files of a stopped server, and the identity of a database's tables."""
    if chosen.database_url is None:
        return {path: path.stat().st_mtime_ns for path in base(chosen.home).rglob("*") if path.is_file()}
    conn = await asyncpg.connect(dsn)
    found = await conn.fetch("select oid, relname from pg_class order by oid")
    await conn.close()
    return found


async def revoked(url: str) -> int:
    conn = await asyncpg.connect(url)
    many = await conn.fetchval("select count(*) from runtime.tokens where revoked_at is not null")
    await conn.close()
    return many


async def test_a_dump_that_cannot_be_made_names_the_command(tmp_path: Path) -> None:
    nowhere = load({"database_url": "postgresql://a:secret@127.0.0.1:9/x"}, env={})
    with pytest.raises(DatabaseError) as failed:
        await create_backup(nowhere, tmp_path / "copy", now=NOON)
    assert "secret" not in str(failed.value)
    assert nothing_in(tmp_path)


def nothing_in(folder: Path) -> bool:
    return list(folder.iterdir()) == []


def seal(copy: Path) -> None:
    """Write the manifest of a changed backup again, as whoever forges one does."""
    forged = backup_manifest.BackupManifest.model_validate_json((copy / backup_manifest.FILE_NAME).read_bytes())
    backup_manifest.write_manifest(copy, forged.model_copy(update={"files": backup_manifest.hash_files(copy)}))


async def test_a_forged_backup_neither_runs_its_commands_nor_opens_the_server(
    lived: Path, other: Path, tmp_path: Path
) -> None:
    # S9
    copy, marker = tmp_path / "copy", tmp_path / "was-run"
    await create_backup(settings(lived), copy, now=NOON)
    base = copy / "base"
    command = f"restore_command = 'touch {marker}'\narchive_mode = on\narchive_command = 'touch {marker}'\n"
    (base / "postgresql.auto.conf").write_text(command)
    with (base / "postgresql.conf").open("a") as config:
        config.write(f"{command}listen_addresses = '127.0.0.1'\nport = 5999\n")
    (base / "pg_hba.conf").write_text("local all all trust\nhost all all 0.0.0.0/0 trust\n")
    (base / "recovery.signal").touch()
    seal(copy)
    await restore(settings(other), copy, schema=SCHEMA, replace=True)
    with EmbeddedServer.start(other) as server:
        conn = await asyncpg.connect(server.dsn("postgres"))
        await conn.execute("select pg_switch_wal()")
        assert await conn.fetchval("select current_setting('listen_addresses')") == ""
        assert await conn.fetchval("select current_setting('archive_command')") in ("", "(disabled)")
        assert await conn.fetchval("select count(*) from pg_hba_file_rules where type <> 'local'") == 0
        await conn.close()
    assert not marker.exists()
    (copy / "ledger").mkdir(exist_ok=True)
    (copy / "ledger" / "linked").symlink_to("/etc/passwd")
    seal(copy)
    with pytest.raises(InputError, match="is a link"):
        await restore(settings(other), copy, schema=SCHEMA, replace=True)
