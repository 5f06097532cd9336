"""Backups of both kinds of database: made while others write, brought back as they were, refused when damaged."""

import asyncio
import random
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from newton import ids
from newton.brain import ledger
from newton.brain.hash_chain import ChainHead
from newton.cognition.request import ContextBuildRequest
from newton.content.package_data import data_folder
from newton.db.backup import create_backup, restore
from newton.db.backup_files import FILE_NAME, hash_files, verify_backup, write_manifest
from newton.db.connection import prepare_database
from newton.db.embedded_server import DATABASE, EmbeddedServer
from newton.db.pool import Database, connect
from newton.db.roles import derive_roles
from newton.errors import ConflictError, DatabaseError, InputError, SchemaVersionError
from newton.settings import Settings, load
from tests.conftest import database
from tests.db.test_hostile_backup import attack, definitions, forget, was_run
from tests.db.world import contexts, live
from tests.support import NOON
from tests.system.servers import base, fresh

pytestmark = pytest.mark.slow

SCHEMA = data_folder("schema")
APP = derive_roles(DATABASE).app
# An agent and its model are committed together, and lie in two files of a backup.
TRIED = """
with made as (
    insert into runtime.agents (agent_id, name, created_at) values (gen_random_uuid(), $1, now()) returning agent_id
)
insert into memory.active_models select agent_id, $2, now() from made
"""
SAID = "select count(*) from runtime.agents where name like 'tried-%'"
TORN = """
select count(*) from runtime.agents as a left join memory.active_models as m using (agent_id)
where a.name like 'tried-%' and m.agent_id is null
"""
MODEL = uuid.UUID(int=7)
ADD_MODEL = "insert into memory.models (model_id, identity, dimensions) values ($1, $2, 4)"


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
    db, ana = await Database.open(server.dsn(APP), size=4), ids.derive_agent_id("ana")
    bundle = await contexts(db).build(ContextBuildRequest(agent_id=ana, input="where is the kettle?", tokens=500))
    async with db.transaction(ana) as tx:
        whole = await ledger.verify_chain(tx, agent_id=ana, external_head=None)
    await db.close()
    return bundle.text, whole


async def write(dsn: str, stop: asyncio.Event) -> int:
    """Commits agent after agent, each with a model."""
    conn, number = await asyncpg.connect(dsn), 0
    while not stop.is_set():
        await conn.execute(TRIED, f"tried-{(number := number + 1)}", MODEL)
    await conn.close()
    return number


@pytest.mark.slow
async def test_a_backup_under_load_is_restored_to_a_state_that_was(lived: Path, other: Path, tmp_path: Path) -> None:
    # R14; figure 9: a backup under load restored into a fresh server answers the same, one flipped byte is refused
    with EmbeddedServer.start(lived) as server:
        owner = server.dsn("postgres")
        await prepare_database(owner, schema=SCHEMA)
        db = await Database.open(server.dsn(APP))
        await live(db, "ana")
        await db.close()
        await answer(server)  # the first one tells what waits for approval, once
        said = await answer(server)
        conn = await asyncpg.connect(owner)
        await conn.execute(ADD_MODEL, MODEL, "tried")
        stop = asyncio.Event()
        writing = asyncio.create_task(write(owner, stop))
        before = await conn.fetchval(SAID)
        made = await create_backup(settings(lived), tmp_path / "copy", now=NOON)
        stop.set()
        after = await writing
        await conn.close()
    assert isinstance(said[1], ChainHead) and said[1].seq > 2
    assert made.rows["memory.memories"] > 20
    damage(tmp_path / "copy")
    done = await restore(settings(other), tmp_path / "copy", schema=SCHEMA, replace=False)
    assert done.rows == made.rows and done.previous_data is None and done.revoked == 1
    with EmbeddedServer.start(other) as server:
        assert await answer(server) == said
        await check_restored(server, before, after, made.rows["memory.memories"])
    await replaced(other, tmp_path / "copy")


async def check_restored(server: EmbeddedServer, before: int, after: int, memories: int) -> None:
    """The restored state lies between two known counts of models, is whole and takes new rows."""
    conn = await asyncpg.connect(server.dsn("postgres"))
    count = await conn.fetchval(SAID)
    assert before <= count <= after and await conn.fetchval(TORN) == 0
    assert await conn.fetchval("select count(*) from memory.memories") == memories
    await conn.execute(ADD_MODEL, uuid.UUID(int=8), "later")
    await conn.close()


def damage(copy: Path) -> None:
    """One changed byte anywhere is found; the copy is whole again afterwards."""
    dice, files = random.Random(14), sorted(path for path in copy.rglob("*") if path.is_file())
    chosen = [copy / FILE_NAME, *dice.sample(files, 8)]
    for path in (path for path in chosen if path.stat().st_size):
        place, bit = dice.randrange(path.stat().st_size), 1 << dice.randrange(8)
        flip(path, place, bit)
        with pytest.raises(InputError, match="damaged"):
            verify_backup(copy)
        flip(path, place, bit)
    (copy / "tables" / "stranger").touch()
    with pytest.raises(InputError, match="is not a file of the backup"):
        verify_backup(copy)
    (copy / "tables" / "stranger").unlink()
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
        assert await conn.fetchval("select count(*) from memory.models where identity = 'later'") == 0
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


async def test_an_external_database_is_copied_and_restored_as_a_whole(
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
        flip(tmp_path / "copy" / "tables" / "memory.memories.tsv", 5_000, 1)
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


async def test_a_backup_that_cannot_be_made_leaves_nothing_and_tells_no_password(tmp_path: Path) -> None:
    nowhere = load({"database_url": "postgresql://a:secret@127.0.0.1:9/x"}, env={})
    with pytest.raises(DatabaseError) as failed:
        await create_backup(nowhere, tmp_path / "copy", now=NOON)
    assert "secret" not in str(failed.value)
    assert nothing_in(tmp_path)


def nothing_in(folder: Path) -> bool:
    return list(folder.iterdir()) == []


async def test_a_hostile_embedded_database_brings_rows_alone_into_either_kind(
    lived: Path, other: Path, server: str, template: str, tmp_path: Path
) -> None:
    # S9: a backup of the embedded server is restored into another one and into an external database
    copy, marker = tmp_path / "copy", Path(tempfile.mkdtemp()) / "was-run"
    await asyncio.to_thread(marker.parent.chmod, 0o777)
    with EmbeddedServer.start(lived) as hostile:
        await prepare_database(hostile.dsn("postgres"), schema=SCHEMA)
        await attack(hostile.dsn("postgres"), marker)
    made = await create_backup(settings(lived), copy, now=NOON)
    forget(marker)
    await restore(settings(other), copy, schema=SCHEMA, replace=False)
    async with database(server, template) as external:
        expected = await definitions(external)
        await restore(load({"database_url": external}, env={}), copy, schema=SCHEMA, replace=True)
        assert await definitions(external) == expected
        with EmbeddedServer.start(other) as restored:
            assert await definitions(restored.dsn("postgres")) == expected
            async with connect(restored.dsn("postgres")) as conn:
                assert await conn.fetchval("select count(*) from runtime.agents") == made.rows["runtime.agents"]
    assert not was_run(marker)
    (copy / "ledger").mkdir(exist_ok=True)
    (copy / "ledger" / "linked").symlink_to("/etc/passwd")
    write_manifest(copy, made.model_copy(update={"files": hash_files(copy)}))
    with pytest.raises(InputError, match="is a link"):
        await restore(settings(other), copy, schema=SCHEMA, replace=True)
