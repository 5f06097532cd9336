"""The embedded server: PostgreSQL with pgvector from a Python package, run for as long as somebody uses it.

Any number of processes share it. Each holds a kernel file lock while it does; the last one out stops the server, and
a killed process counts for nothing because the kernel drops its lock. The server's own processes hold such a lock too,
so whether it lives is never read from a process id: that may be another's by now.
"""

import contextlib
import fcntl
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Literal

from newton.clock import monotonic_ms
from newton.db.server_paths import (
    MAJOR,
    PORT,
    SOCKET,
    ServerPaths,
    ensure_private_folder,
    ensure_socket_folder,
    resolve_paths,
)
from newton.errors import ConflictError, DatabaseError

DATABASE = "postgres"  # the one that initdb makes: a data folder is whole or not there
START_LOCK, USERS_LOCK, LIFE_LOCK = "server.start.lock", "server.users.lock", "server.life.lock"
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
TIMEOUT_SECONDS = 60  # seconds that a server may take to start, to stop, or to be gone after a crash
MAX_LOG_BYTES = 5_000_000  # bytes; a longer log is begun anew at the next start

CONFIG = """
listen_addresses = ''
unix_socket_permissions = 0770
max_connections = 50
shared_buffers = '96MB'
jit = off
log_min_messages = warning
timezone = 'UTC'
"""
NON_DURABLE_CONFIG = """
fsync = off
synchronous_commit = off
full_page_writes = off
# what it finds of rows that are rolled back again would make plans worse than knowing nothing
autovacuum = off
"""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/", "TZ": "UTC"}

# PostgreSQL's own rules fold case and sort by code point. Which characters make a word its parser asks of the system,
# by a locale of which every system has at least one.
LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
CTYPES = ("C.UTF-8", "en_US.UTF-8")

# busy: it starts or stops, or processes of one that has crashed are left.
ServerState = Literal["ready", "busy", "gone"]


class EmbeddedServer:
    """A running server. Keep it while you use it, then `stop()`."""

    def __init__(self, paths: ServerPaths, users_lock: int) -> None:
        self._paths, self._users_lock = paths, users_lock

    @classmethod
    def start(cls, home: Path, *, durable: bool = True) -> "EmbeddedServer":
        """Starts the server of this home folder, or joins it. `durable=False` is for tests: it may lose data.

        Raises DatabaseError saying what is wrong and what to do.
        """
        ensure_private_folder(home)
        with _exclusive_start(home):
            place = resolve_paths(home)
            _initialize(place, durable=durable)
            if _wait_for(place, "ready", "gone") == "gone":
                _start_server(place)
            user = os.open(home / USERS_LOCK, LOCK_FLAGS, 0o600)
            fcntl.flock(user, fcntl.LOCK_SH)
        return cls(place, user)

    @property
    def paths(self) -> ServerPaths:
        return self._paths

    def revive(self) -> None:
        """Starts the server again when it has died. Raises DatabaseError when it does not come."""
        if _state(self._paths) == "ready":
            return
        with _exclusive_start(self._paths.home):
            if _wait_for(self._paths, "ready", "gone") == "gone":
                _start_server(self._paths)

    def dsn(self, user: str, database: str = DATABASE) -> str:
        """The connection string, over a socket that only this person can reach. It leaves nothing to PG… variables."""
        place = f"host={self._paths.sockets}&port={PORT}"
        return f"postgresql://{user}@/{database}?{place}&sslmode=disable&target_session_attrs=any"

    def stop(self) -> None:
        """Leaves the server; whoever leaves last stops it."""
        with _exclusive_start(self._paths.home):
            try:
                fcntl.flock(self._users_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _wait_for(self._paths, "ready", "gone") == "ready":  # it may have died before
                    _run_program(self._paths, "pg_ctl", "stop", "-W", "-m", "fast", "-D", str(self._paths.data))
                    _wait_for(self._paths, "gone")
            except BlockingIOError:
                pass  # somebody else uses it on
            finally:
                os.close(self._users_lock)

    def __enter__(self) -> "EmbeddedServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def _exclusive_start(home: Path) -> Generator[None]:
    """Nobody else starts or stops this server meanwhile. flock, because its locks belong to the open file: another
    part of the same process that opens and closes it does not drop them."""
    with _open_lock(home / START_LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def exclusive_access(home: Path) -> Generator[ServerPaths]:
    """The place of a server that is stopped and stays so meanwhile. Raises ConflictError when somebody uses it."""
    ensure_private_folder(home)
    with _exclusive_start(home), _open_lock(home / USERS_LOCK) as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"Newton is at work on the data of {home}.", hint="Stop `newton serve` and what else uses it."
            ) from None
        place = resolve_paths(home)
        if _wait_for(place, "ready", "gone") == "ready":  # whoever used it was killed
            _run_program(place, "pg_ctl", "stop", "-W", "-m", "fast", "-D", str(place.data))
            _wait_for(place, "gone")
        yield place


@contextlib.contextmanager
def _open_lock(lock: Path) -> Generator[int]:
    """A file to lock; what was locked by it ends with it, unless a process that inherited it holds it on."""
    file = os.open(lock, LOCK_FLAGS, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def delete_data(home: Path) -> None:
    """Deletes the data of a stopped server. There is no way back."""
    if (home / "server.place").is_file() or (home / "postgres").is_dir():
        place = resolve_paths(home)
        shutil.rmtree(place.data, ignore_errors=True)
        if place.user:
            shutil.rmtree(place.base, ignore_errors=True)
            (home / "server.place").unlink()


def _initialize(paths: ServerPaths, *, durable: bool) -> None:
    """A data folder that is whole: it is made under another name first."""
    version = paths.data / "PG_VERSION"
    if version.is_file():
        if (found := version.read_text(encoding="ascii").strip()) != MAJOR:
            raise DatabaseError(
                f"{paths.data} was made by PostgreSQL {found}, and this is {MAJOR}.",
                hint="Move that folder away, or set DATABASE_URL to a server of its version.",
            )
        return
    for left in paths.base.glob("postgres.*.part"):
        shutil.rmtree(left, ignore_errors=True)
    partial = paths.base / f"postgres.{uuid.uuid4().hex[:8]}.part"
    _initdb(paths, partial)
    with (partial / "postgresql.conf").open("a", encoding="utf-8") as config:
        config.write(CONFIG if durable else CONFIG + NON_DURABLE_CONFIG)
    partial.rename(paths.data)


def _initdb(paths: ServerPaths, folder: Path) -> None:
    fixed = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-instructions", *LOCALE)
    said = ""
    for characters in CTYPES:
        done = _run_process(paths, "initdb", "-D", str(folder), f"--lc-ctype={characters}", *fixed)
        if done.returncode == 0:
            return
        said = _error_text(done)
    raise _server_error(paths, f"initdb: {said}")


def _state(paths: ServerPaths) -> ServerState:
    if _reported_status(paths) == "ready" and _is_listening(paths):
        return "ready"
    return "busy" if _is_alive(paths) or _is_listening(paths) else "gone"


def _reported_status(paths: ServerPaths) -> str:
    """What the server says of itself. It is what one that has crashed said last."""
    try:
        lines = (paths.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[7].strip() if len(lines) > 7 else ""


def _is_listening(paths: ServerPaths) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(0)
        try:
            line.connect(str(paths.sockets / SOCKET))
        except BlockingIOError:
            return True  # so many wait to be answered that there is no room
        except OSError:
            return False
    return True


def _is_alive(paths: ServerPaths) -> bool:
    """Whether any process of the server is left: they hold this lock from their birth."""
    with _open_lock(paths.base / LIFE_LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _wait_for(paths: ServerPaths, *wanted: ServerState) -> ServerState:
    """Waits for one of these states. Raises DatabaseError when none comes."""
    end = monotonic_ms() + TIMEOUT_SECONDS * 1_000
    while (state := _state(paths)) not in wanted:
        if monotonic_ms() > end:
            raise _server_error(paths, f"after {TIMEOUT_SECONDS} seconds it is still not {' or '.join(wanted)}")
        time.sleep(0.005)
    return state


def _start_server(paths: ServerPaths) -> None:
    if paths.log.is_file() and paths.log.stat().st_size > MAX_LOG_BYTES:
        paths.log.unlink()
    if paths.sockets != paths.base:
        ensure_socket_folder(paths.sockets)
    _mark_locks_stale(paths)
    options = (f"unix_socket_directories={paths.sockets}", f"port={PORT}")
    server = (str(paths.binaries / "postgres"), "-D", str(paths.data), "-c", options[0], "-c", options[1])
    with _open_lock(paths.base / LIFE_LOCK) as life:
        fcntl.flock(life, fcntl.LOCK_EX)
        # The shell ends at once, so the server is nobody's child. pg_ctl would not take a path with a quote.
        _run_program(paths, "/bin/sh", "-c", '"$@" >>"$0" 2>&1 &', str(paths.log), *server, inherited=life)
    if _wait_for(paths, "ready", "gone") == "gone":
        raise _server_error(paths, "it ended at once")


def _mark_locks_stale(paths: ServerPaths) -> None:
    """Makes the lock files of a dead server stale to PostgreSQL, which takes any process of that id for the server but
    never the one that starts it, as its environment tells. The rest of the data folder's stays: by it PostgreSQL makes
    sure that nobody works on the data any more."""
    (paths.sockets / f"{SOCKET}.lock").unlink(missing_ok=True)
    try:
        lock = os.open(paths.data / "postmaster.pid", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(lock, "r+b") as file:
        _, _, rest = file.read().partition(b"\n")
        file.seek(0)
        file.write(b"%d\n%s" % (os.getpid(), rest))
        file.truncate()


def _run_program(paths: ServerPaths, program: str, *arguments: str, inherited: int | None = None) -> None:
    done = _run_process(paths, program, *arguments, inherited=inherited)
    if done.returncode:
        raise _server_error(paths, f"{program}: {_error_text(done)}")


def _run_process(
    paths: ServerPaths, program: str, *arguments: str, inherited: int | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [str(paths.binaries / program), *arguments]
    owner = pwd.getpwnam(paths.user) if paths.user else None
    # Its own session, so that Ctrl-C in a terminal does not reach the server; and the server, which lives on, must
    # not hold a pipe that somebody reads to its end.
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env={**ENVIRONMENT, "PG_GRANDPARENT_PID": str(os.getpid())},  # see _disowned
            start_new_session=True,
            umask=0o077,
            check=False,
            pass_fds=() if inherited is None else (inherited,),
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )
        errors.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, "", errors.read())


def _error_text(done: "subprocess.CompletedProcess[str]") -> str:
    return " ".join(done.stderr.split()) or "no word"


def _server_error(paths: ServerPaths, detail: str) -> DatabaseError:
    return DatabaseError(
        f"The embedded PostgreSQL failed ({detail}).{_last_lines(paths.log)}",
        hint=f"Free disk space, check the rights of {paths.base}, or set DATABASE_URL to a server of your own.",
    )


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    except OSError:
        return ""
    return "\nIts log ends:\n" + "\n".join(f"  {line}" for line in lines) + "\n"


@contextlib.contextmanager
def temporary_server(*, durable: bool = False) -> Generator[EmbeddedServer]:
    """A server with a home of its own that is gone afterwards: for tests and benchmarks."""
    home = Path(tempfile.mkdtemp(prefix="newton-"))
    try:
        with EmbeddedServer.start(home, durable=durable) as server:
            yield server
        delete_data(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
