"""The embedded server as several real processes use it: started once, shared, survived, and stopped by the last."""

import os
import pwd
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from newton.db.embedded_server import DATABASE, EmbeddedServer, delete_data
from newton.db.server_paths import (
    MAJOR,
    SOCKET,
    SOCKET_PATH_LIMIT,
    ServerPaths,
    find_admin_program,
    find_database_folder,
)
from tests.system.servers import SLOW, alive, base, data, fresh, postmaster, run, wait
from tests.system.typed import typed

# A process that holds the server until its input ends.
HOLDER = """
import sys
from pathlib import Path
from newton.db.embedded_server import EmbeddedServer
server = EmbeddedServer.start(Path(sys.argv[1]), durable=sys.argv[2] == "durable")
print(server.dsn("postgres"), flush=True)
sys.stdin.read()
server.stop()
"""


class Hold(Protocol):
    def __call__(self, home: Path, *, durable: bool = True) -> "subprocess.Popen[str]": ...


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with fresh(tmp_path / "home") as made:
        yield made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home whose data folder is made already; every test leaves its server stopped."""
    with fresh(tmp_path_factory.mktemp("kept") / "home") as made:
        EmbeddedServer.start(made).stop()
        yield made


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Starts processes that hold a home's server. Those a failed test leaves behind are killed."""
    held: list[subprocess.Popen[str]] = []

    def start(home: Path, *, durable: bool = True) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", HOLDER, str(home), "durable" if durable else "careless"]
        held.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return held[-1]

    yield start
    for process in held:
        if process.poll() is None:
            kill(process)


def ready(process: "subprocess.Popen[str]") -> str:
    """Waits until it holds the server; its connection string."""
    assert process.stdout
    dsn = process.stdout.readline().strip()
    assert dsn.startswith("postgresql://"), process.wait()
    return dsn


def leave(process: "subprocess.Popen[str]") -> None:
    process.communicate(timeout=SLOW)
    assert process.returncode == 0


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=SLOW)


async def test_a_server_answers_from_start_to_stop(kept: Path) -> None:
    with EmbeddedServer.start(kept) as server:
        assert await run(server.dsn("postgres"), "select current_database()") == DATABASE
        assert await run(server.dsn("postgres"), "select current_setting('server_version_num')::int / 10000") == int(
            MAJOR
        )
        durable = "select current_setting('fsync') || current_setting('full_page_writes')"
        assert await run(server.dsn("postgres"), durable) == "onon"
        assert await run(server.dsn("postgres"), "select current_setting('listen_addresses')") == ""
        dsn = server.dsn("postgres")
    assert postmaster(kept) is None
    with pytest.raises(OSError, match=r"No such file|refused"):
        await run(dsn, "select 1")


def test_it_runs_as_nobody_who_could_harm_the_machine(kept: Path) -> None:
    with EmbeddedServer.start(kept):
        pid = postmaster(kept)
        assert pid is not None
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        folder = data(kept).stat()
        assert stat.S_IMODE(folder.st_mode) == 0o700
        assert pwd.getpwuid(folder.st_uid).pw_name != "root"


@pytest.mark.fault
async def test_two_processes_share_one_server_and_the_last_one_out_stops_it(kept: Path, hold: Hold) -> None:
    one, two = hold(kept), hold(kept)
    assert ready(one) == ready(two)
    server = postmaster(kept)
    leave(one)
    assert server is not None
    assert postmaster(kept) == server, "somebody still uses it"
    leave(two)
    assert postmaster(kept) is None


async def test_two_users_inside_one_process_count_as_two(kept: Path) -> None:
    one, two = EmbeddedServer.start(kept), EmbeddedServer.start(kept)
    one.stop()
    assert await run(two.dsn("postgres"), "select 1") == 1
    two.stop()
    assert postmaster(kept) is None


async def test_a_user_that_was_killed_holds_nothing(kept: Path, hold: Hold) -> None:
    killed = hold(kept)
    ready(killed)
    server = postmaster(kept)
    kill(killed)
    assert postmaster(kept) == server, "nobody was left to stop it"
    heir = hold(kept)
    assert await run(ready(heir), "select 1") == 1
    assert postmaster(kept) == server, "it is used on"
    leave(heir)
    assert postmaster(kept) is None


@pytest.mark.fault
async def test_what_was_committed_outlives_the_servers_violent_end(kept: Path, hold: Hold) -> None:
    first = hold(kept)
    dsn = ready(first)
    await run(dsn, "create table if not exists kept (line text)")
    await run(dsn, "insert into kept values ('still here')")
    server = postmaster(kept)
    assert server is not None
    os.kill(server, signal.SIGKILL)
    wait(lambda: not alive(server))
    kill(first)
    second = hold(kept)
    assert await run(ready(second), "select line from kept") == "still here"
    assert postmaster(kept) != server
    leave(second)


@pytest.mark.fault
async def test_who_leaves_a_server_that_died_leaves_in_peace(kept: Path) -> None:
    server = EmbeddedServer.start(kept)
    pid = postmaster(kept)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait(lambda: not alive(pid))
    server.stop()
    with EmbeddedServer.start(kept) as again:
        assert await run(again.dsn("postgres"), "select 1") == 1
    assert postmaster(kept) is None


@pytest.mark.fault
async def test_three_processes_that_start_it_for_the_first_time_at_once_get_one_server(home: Path, hold: Hold) -> None:
    together = [hold(home, durable=False) for _ in range(3)]
    assert len({ready(process) for process in together}) == 1
    assert [await run(ready_dsn(home), "select 1") for _ in together] == [1, 1, 1]
    server = postmaster(home)
    for process in together[:2]:
        leave(process)
    assert postmaster(home) == server
    leave(together[2])
    assert postmaster(home) is None


def ready_dsn(home: Path) -> str:
    """The connection string of a server that runs."""
    with EmbeddedServer.start(home) as server:
        return server.dsn("postgres")


def half_made(home: Path) -> list[Path]:
    """Data folders in the making."""
    return list(base(home).glob("postgres.*.part"))


@pytest.mark.fault
async def test_a_first_start_that_was_killed_half_way_is_begun_anew(home: Path, hold: Hold) -> None:
    half = hold(home, durable=False)
    wait(lambda: half_made(home))
    kill(half)
    assert not data(home).exists()
    with EmbeddedServer.start(home, durable=False) as server:
        assert await run(server.dsn("postgres"), "select 1") == 1


@pytest.mark.slow
async def test_a_closed_home_stays_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with fresh(closed / "mind") as home:
        home.mkdir(mode=0o700)
        above = [home, *home.parents]
        before = [(folder.stat().st_mode, folder.stat().st_uid) for folder in above]
        with EmbeddedServer.start(home, durable=False) as server:
            assert await run(server.dsn("postgres"), "select 1") == 1
            assert [(folder.stat().st_mode, folder.stat().st_uid) for folder in above] == before
        assert [(folder.stat().st_mode, folder.stat().st_uid) for folder in above] == before
        made = data(home)
        delete_data(home)
        assert not made.exists(), "what is discarded is gone"


def test_the_user_of_the_server_is_created_though_path_names_no_folder_of_administration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert Path(find_admin_program("useradd")).is_absolute() or not Path("/usr/sbin/useradd").exists()
    assert find_admin_program("no-such-program") == "no-such-program"


@pytest.mark.slow
def test_the_first_start_says_where_a_database_outside_of_the_data_folder_lies(tmp_path: Path) -> None:
    with fresh(tmp_path / "home") as home:
        home.mkdir()
        first, second = (typed(home, "agents"), typed(home, "doctor"))
        folder = find_database_folder(home)
        is_outside = folder != home
        assert is_outside == (os.geteuid() == 0)
        assert (f"The database is in {folder}, " in first.stderr) == is_outside
        assert first.returncode == 0 and "The database is in" not in second.stderr
        assert f"embedded, data in {folder}" in second.stdout


@pytest.mark.slow
async def test_a_home_of_a_long_path_works(tmp_path: Path) -> None:
    with fresh(tmp_path / ("mind of an agent with a long name, " * 5) / "home 'quoted' \"twice\"") as home:
        with EmbeddedServer.start(home, durable=False) as server:
            assert await run(server.dsn("postgres"), "select 1") == 1
        assert postmaster(home) is None


def test_a_long_base_has_its_sockets_at_a_short_place_of_its_own(tmp_path: Path) -> None:
    def place(base: Path) -> ServerPaths:
        return ServerPaths(home=base, base=base, binaries=tmp_path, user=None)

    bases = [tmp_path / ("x" * 150), tmp_path / ("y" * 150), Path("/tmp/a b"), Path("/tmp/a,b"), Path('/tmp/"$HOME"')]
    sockets = [place(base).sockets for base in bases]
    assert len(set(sockets)) == len(bases)
    for made in sockets:
        assert len(os.fsencode(made / SOCKET)) < SOCKET_PATH_LIMIT
        assert re.fullmatch(r"[\w/.-]+", str(made))
    short = place(Path("/tmp/x"))
    assert short.sockets == short.base
