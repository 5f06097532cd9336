"""The embedded server when things go wrong: crashes, interruptions, foreign settings, and files that are not there."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest

from newton.db.embedded_server import EmbeddedServer
from newton.db.server_paths import MAJOR, SOCKET
from newton.errors import DatabaseError
from tests.system.servers import alive, base, data, fresh, postmaster, run, wait

pytestmark = pytest.mark.fault

# A process that is interrupted while it waits for its turn to start the server.
HASTY = """
import asyncio, signal, sys
from pathlib import Path
from newton.db.connection import open_database
from newton.settings import Settings

async def main():
    try:
        async with open_database(Settings(data_dir=Path(sys.argv[1])), schema=Path(sys.argv[2])):
            print("too late", flush=True)
    except asyncio.CancelledError:
        print("interrupted", flush=True)
        raise

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose data folder is made already; every test leaves its server stopped."""
    with fresh(tmp_path_factory.mktemp("kept") / "home") as made:
        EmbeddedServer.start(made).stop()
        yield made


@pytest.fixture
def stranger(kept: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the server's user that has nothing to do with it."""
    with subprocess.Popen(["sleep", "600"], user=data(kept).stat().st_uid) as process:
        yield process
        process.kill()


def crash(home: Path, *, heir: int) -> None:
    """The server dies without a word, and another process gets its id."""
    pid = postmaster(home)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait(lambda: not alive(pid))
    for lock in (data(home) / "postmaster.pid", base(home) / f"{SOCKET}.lock"):
        _, rest = lock.read_text(encoding="utf-8").split("\n", maxsplit=1)
        lock.write_text(f"{heir}\n{rest}", encoding="utf-8")


async def test_a_process_that_got_the_id_of_a_dead_server_is_in_nobodys_way(
    kept: Path, stranger: "subprocess.Popen[bytes]"
) -> None:
    first = EmbeddedServer.start(kept)
    crash(kept, heir=stranger.pid)
    with EmbeddedServer.start(kept) as second:
        assert await run(second.dsn("postgres"), "select 1") == 1
        assert postmaster(kept) not in (None, stranger.pid)
        first.stop()
        assert await run(second.dsn("postgres"), "select 1") == 1
    assert postmaster(kept) is None
    assert stranger.poll() is None, "it was left alone"


def test_who_leaves_a_dead_server_leaves_the_process_alone_that_got_its_id(
    kept: Path, stranger: "subprocess.Popen[bytes]"
) -> None:
    server = EmbeddedServer.start(kept)
    crash(kept, heir=stranger.pid)
    server.stop()
    assert stranger.poll() is None
    EmbeddedServer.start(kept).stop()
    assert stranger.poll() is None


@pytest.mark.parametrize("left", ["", "no number\n"])
async def test_what_a_power_cut_left_of_the_lock_file_does_not_lock_anybody_out(kept: Path, left: str) -> None:
    (data(kept) / "postmaster.pid").write_text(left, encoding="utf-8")
    with EmbeddedServer.start(kept) as server:
        assert await run(server.dsn("postgres"), "select 1") == 1


async def test_a_server_still_starting_is_waited_for_and_not_started_twice(kept: Path) -> None:
    with EmbeddedServer.start(kept) as server:
        lock = data(kept) / "postmaster.pid"
        said = lock.read_text(encoding="utf-8")
        assert said.endswith("ready   \n")
        lock.write_text(said.replace("ready   ", "starting"), encoding="utf-8")
        joining = asyncio.create_task(asyncio.to_thread(EmbeddedServer.start, kept))
        done, _ = await asyncio.wait([joining], timeout=0.2)
        assert not done
        lock.write_text(said, encoding="utf-8")
        joined = await joining
        assert joined.dsn("postgres") == server.dsn("postgres")
        joined.stop()
        assert await run(server.dsn("postgres"), "select 1") == 1


@pytest.mark.fault
def test_who_is_interrupted_while_the_server_starts_leaves_none_running(kept: Path) -> None:
    log = base(kept) / "postgres.log"
    before = log.stat().st_size
    with (kept / "server.start.lock").open("r") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        command = [sys.executable, "-c", HASTY, str(kept), "nowhere"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as hasty:
            wait(lambda: waits_for(hasty.pid, kept / "server.start.lock"))
            hasty.send_signal(signal.SIGINT)
            assert hasty.stdout
            assert hasty.stdout.readline() == "interrupted\n"
            fcntl.flock(turn, fcntl.LOCK_UN)
    assert hasty.returncode != 0
    assert log.stat().st_size > before, "it did start"
    assert postmaster(kept) is None


def waits_for(pid: int, lock: Path) -> bool:
    """Whether the process has opened that file; it waits for its lock then."""
    opened: set[str] = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            opened.add(str(file.readlink()))
    return str(lock) in opened


async def test_variables_of_other_postgres_tools_do_not_reach_it(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "PGPORT": "5433", "PGHOST": "db.example", "PGUSER": "nobody", "PGDATABASE": "none", "PGPASSWORD": "x",
        "PGSSLMODE": "verify-full", "PGTARGETSESSIONATTRS": "read-only", "PGOPTIONS": "-c port=1", "PGDATA": "/nowhere",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with EmbeddedServer.start(kept) as server:
        assert await run(server.dsn("postgres"), "select current_user") == "postgres"


async def test_its_words_are_those_of_every_script(kept: Path) -> None:
    texts = {
        "“Lisbon”—finally": "lisbon finally",
        "Ana’s flat": "ana flat",
        "ÉLODIE École": "élodie école",
        "ПРИВЕТ Żółć": "привет żółć",
        "東京 2026": "東京 2026",
    }
    found = "select to_tsvector('english', $1) @@ plainto_tsquery('english', $2)"
    with EmbeddedServer.start(kept) as server:
        conn = await asyncpg.connect(server.dsn("postgres"))
        assert [text for text, words in texts.items() if not await conn.fetchval(found, text, words)] == []
        await conn.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the home of root points to another folder")
@pytest.mark.parametrize("left", ["/nowhere/at/all\n", "", "."])
def test_a_home_whose_data_is_gone_is_an_error_and_no_empty_database(kept: Path, left: str) -> None:
    pointer = kept / "server.place"
    said = pointer.read_text(encoding="utf-8")
    pointer.write_text(left, encoding="utf-8")
    try:
        with pytest.raises(DatabaseError, match="names the data folder") as refused:
            EmbeddedServer.start(kept)
        assert f"delete {pointer}" in refused.value.hint
        assert pointer.read_text(encoding="utf-8") == left
    finally:
        pointer.write_text(said, encoding="utf-8")


@pytest.mark.parametrize("found", ["16", "19"])
def test_data_of_another_major_version_is_refused_with_a_remedy_and_left_as_they_are(kept: Path, found: str) -> None:
    version = data(kept) / "PG_VERSION"
    version.write_text(f"{found}\n", encoding="ascii")
    before = written(kept)
    try:
        with pytest.raises(
            DatabaseError, match=f"created by PostgreSQL {found}; the installed version is {MAJOR}"
        ) as refused:
            EmbeddedServer.start(kept)
        assert "DATABASE_URL" in refused.value.hint
        assert written(kept) == before
    finally:
        version.write_text(f"{MAJOR}\n", encoding="ascii")
    EmbeddedServer.start(kept).stop()


def written(home: Path) -> dict[Path, tuple[int, int]]:
    """When each file of the data folder was written, and its size."""
    files = [path for path in base(home).rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def test_a_home_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(DatabaseError, match="cannot be created") as refused:
        EmbeddedServer.start(tmp_path / "file" / "home")
    assert "NEWTON_DATA_DIR" in refused.value.hint


def test_a_server_that_cannot_start_says_what_its_log_says(kept: Path) -> None:
    config = data(kept) / "postgresql.conf"
    good = config.read_text(encoding="utf-8")
    config.write_text(f"{good}no_such_setting = 1\n", encoding="utf-8")
    try:
        with pytest.raises(DatabaseError, match="no_such_setting") as refused:
            EmbeddedServer.start(kept)
        assert "DATABASE_URL" in refused.value.hint
    finally:
        config.write_text(good, encoding="utf-8")
    EmbeddedServer.start(kept).stop()
