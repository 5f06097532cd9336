"""Backups made by somebody else: whatever their database did or holds, a restore brings rows and nothing that runs."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from newton.content.package_data import data_folder
from newton.db.backup import create_backup, restore
from newton.db.backup_files import hash_files, write_manifest
from newton.db.pool import Database, connect
from newton.db.roles import read_roles
from newton.errors import InputError
from newton.settings import load
from tests.cases import load_cases
from tests.conftest import database
from tests.db.world import live
from tests.support import NOON

CASES = load_cases(__file__)

SCHEMA = data_folder("schema")
# Each statement leaves something in a database that runs, or that lets somebody in, when it is restored or used. `run`
# is a program on the server; it can only be called by a superuser, which restoring is done as.
ATTACKS = CASES["ATTACKS"]
# Everything in a database that can run or lets somebody do something, but for the rows.
DEFINITIONS = CASES["DEFINITIONS"]


def was_run(marker: Path) -> bool:
    return marker.exists()


def forget(marker: Path) -> None:
    marker.unlink(missing_ok=True)


async def attack(dsn: str, marker: Path, *, but: frozenset[str] = frozenset()) -> None:
    async with connect(dsn) as conn:
        await conn.execute("set check_function_bodies = off")
        for name, sql in ATTACKS.items():
            if name not in but:
                await conn.execute(sql.replace("{marker}", str(marker)))


async def definitions(dsn: str) -> set[tuple[str, ...]]:
    """What is defined, with the same names of roles for every database."""
    async with connect(dsn) as conn:
        app, worker = await read_roles(conn)
        named = await conn.fetch(DEFINITIONS)
    return {tuple((part or "").replace(app, "app").replace(worker, "worker") for part in row) for row in named}


@pytest.fixture
def marker() -> Iterator[Path]:
    """A file in a folder where the server may write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder) / "was-run"


@pytest.fixture
async def hostile(clone: str, marker: Path) -> AsyncIterator[str]:
    db = await Database.open(clone, size=4)
    await live(db, "ana")
    await db.close()
    await attack(clone, marker)
    yield clone


@pytest.mark.one_server("Citus refuses triggers on a distributed table")
async def test_nothing_that_a_hostile_database_defines_is_restored_or_run(
    hostile: str, marker: Path, server: str, template: str, tmp_path: Path
) -> None:
    # S9, R14: a restore brings back the rows; whatever else the database held stays behind, and none of it is run
    made = await create_backup(load({"database_url": hostile}, env={}), tmp_path / "copy", now=NOON)
    forget(marker)  # the hostile database itself may run it
    async with database(server, template) as used:
        before = await definitions(used)
        chosen = load({"database_url": used}, env={})
        done = await restore(chosen, tmp_path / "copy", schema=SCHEMA, replace=True)
        assert await definitions(used) == before
        async with connect(used) as conn:
            await conn.execute("update runtime.tokens set revoked_at = now()")
            assert await conn.fetchval("select count(*) from memory.memories") == made.rows["memory.memories"] > 20
    assert done.revoked == 1
    assert not was_run(marker)


ID = "00000000-0000-7000-8000-000000000001"
MODEL = ("model_id", "identity", "dimensions")
# What a forged backup says of one table: the table, its rows, their columns and their number; and what is answered.
FORGED = {
    "a value out of range": (
        "memory.models",
        f"{ID}\tx\t-1\n",
        MODEL,
        1,
        "memory.models has rows that are not allowed",
    ),
    "a row of nobody": (
        "memory.active_models",
        f"{ID}\t{ID}\t2026-11-21 12:00:00+00\n",
        ("agent_id", "model_id", "activated_at"),
        1,
        "memory.active_models has rows that are not allowed",
    ),
    "a statement as a column": (
        "memory.models",
        f"{ID}\tx\t4\n",
        (*MODEL, "x) from program 'touch {marker}' --"),
        1,
        "which no migration of Newton creates",
    ),
    "a program as a row": ("memory.models", "\\! touch {marker}\n\\.\n", MODEL, 1, "not allowed"),
    "rows that are not there": ("memory.models", f"{ID}\tx\t4\n", MODEL, 2, "another number of rows"),
}


@pytest.mark.slow
@pytest.mark.one_server("the rows of a cluster are never replaced: the backup is refused before it is read")
async def test_forged_rows_are_refused_and_nothing_changes(clone: str, marker: Path, tmp_path: Path) -> None:
    # S9, R14
    chosen = load({"database_url": clone}, env={})
    made = await create_backup(chosen, tmp_path / "copy", now=NOON)
    async with connect(clone) as conn:
        await conn.execute("create table runtime.kept ()")
        for forgery, (table, text, columns, rows, answer) in FORGED.items():
            copy = tmp_path / forgery
            shutil.copytree(tmp_path / "copy", copy)
            (copy / "tables" / f"{table}.tsv").write_text(text.replace("{marker}", str(marker)))
            named = tuple(column.replace("{marker}", str(marker)) for column in columns)
            changed = {"rows": {**made.rows, table: rows}, "columns": {**made.columns, table: named}}
            write_manifest(copy, made.model_copy(update={**changed, "files": hash_files(copy)}))
            with pytest.raises(InputError, match=answer):
                await restore(chosen, copy, schema=SCHEMA, replace=True)
            assert await conn.fetchval("select to_regclass('runtime.kept')") == "runtime.kept", forgery
            assert not was_run(marker), forgery
