"""A backup is of a database of Newton, whole, and read back; else nothing of it is left."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from newton.db import backup_files
from newton.db.backup import create_backup
from newton.db.pool import Database
from newton.errors import ConflictError, InputError
from newton.settings import load
from tests.conftest import database
from tests.db.world import live
from tests.support import NOON
from tests.system.typed import ok, typed


async def back_up(dsn: str, folder: Path) -> None:
    await create_backup(load({"database_url": dsn}, env={}), folder, now=NOON)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "made",
    [
        "select 1",
        "create table public.accounts (id int); insert into public.accounts values (1)",
        "create schema runtime; create table runtime.schema_migrations (name text, sha256 text)",
        "create schema memory; create table memory.memories (id int)",
    ],
)
async def test_a_database_of_something_else_is_refused(server: str, tmp_path: Path, made: str) -> None:
    async with database(server, "template0") as dsn:
        conn = await asyncpg.connect(dsn)
        await conn.execute(made)
        await conn.close()
        with pytest.raises(InputError, match=f"{urlsplit(dsn).path[1:]}' has no tables of Newton") as refused:
            await back_up(dsn, tmp_path / "copy")
    assert "DATABASE_URL" in refused.value.hint
    assert files_in(tmp_path) == []


async def test_what_is_there_is_not_overwritten(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "folder")
    for name in ("file", "folder", "pipe", "dangling"):
        with pytest.raises(ConflictError, match="already exists") as refused:
            await back_up(dsn, tmp_path / name)
        is_folder = (tmp_path / name).is_dir()
        assert (str(tmp_path / name / "newton-backup") in refused.value.hint) == is_folder
    assert files_in(tmp_path) == ["dangling", "file", "folder", "pipe"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_a_full_disk_leaves_nothing_and_says_so(db: Database, dsn: str, small_disk: Path) -> None:
    await live(db, "ana")
    with pytest.raises(InputError, match="No space left on device"):
        await back_up(dsn, small_disk / "copy")
    assert files_in(small_disk) == []


async def test_what_the_disk_changed_is_found_before_the_backup_is_there(
    db: Database, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live(db, "ana")
    synced = os.fsync

    def lose(file: int) -> None:
        synced(file)
        if Path(f"/proc/self/fd/{file}").readlink().name == "heart.facts.tsv":
            os.ftruncate(file, os.fstat(file).st_size - 1)

    monkeypatch.setattr(backup_files.os, "fsync", lose)
    with pytest.raises(InputError, match=r"heart\.facts\.tsv was changed"):
        await back_up(dsn, tmp_path / "copy")
    assert files_in(tmp_path) == []


def test_a_backup_says_what_a_person_would_count(home: Path, tmp_path: Path) -> None:
    ok(typed(home, "agents", "create", "counted"))
    agent = ("--agent", "counted")
    ok(typed(home, "remember", "Ines\tlives in\nPorto.", *agent))
    ok(typed(home, "remember", "Tomas lives in Braga.", *agent))
    ok(typed(home, "decide", "Use PostgreSQL", "--confidence", "0.8", "--reason", "analysis:it is there", *agent))
    said = ok(typed(home, "backup", str(tmp_path / "copy")))
    assert "2 facts, 1 decision" in said and "Read back and verified" in said
    counted = json.loads(ok(typed(home, "backup", str(tmp_path / "other"), "--json")))["kinds"]
    assert (counted["fact"], counted["decision"]) == (2, 1)
