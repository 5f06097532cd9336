"""The embedded server: PostgreSQL with pgvector from a Python package, running while any process uses it.

Each user process holds a shared kernel file lock; the last one to exit stops the server, and the kernel drops the lock
of a killed process. The server's own processes hold such a lock too, so liveness is never read from a process id, which
may be reused.
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

DATABASE = "postgres"  # created by initdb; the rename makes the data folder appear complete or not at all
START_LOCK, USERS_LOCK, LIFE_LOCK = "server.start.lock", "server.users.lock", "server.life.lock"
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
TIMEOUT_SECONDS = 60  # seconds for a server to start, to stop, or to exit after a crash
MAX_LOG_BYTES = 5_000_000  # bytes; a longer log is truncated at the next start

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

# busy: it starts or stops, or processes of a crashed server remain.
ServerState = Literal["ready", "busy", "gone"]


class EmbeddedServer:
    """A handle on a running server. Call `stop()` when done."""

    def __init__(self, paths: ServerPaths, users_lock: int) -> None:
        self._paths, self._users_lock = paths, users_lock

    @classmethod
    def start(cls, home: Path, *, durable: bool = True) -> "EmbeddedServer":
        """Start the server of this home folder, or join it. `durable=False` is for tests: it may lose data.

        Raises DatabaseError with the cause and the remedy.
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
        """Restart the server if it has died. Raises DatabaseError when it does not start."""
        if _state(self._paths) == "ready":
            return
        with _exclusive_start(self._paths.home):
            if _wait_for(self._paths, "ready", "gone") == "gone":
                _start_server(self._paths)

    def dsn(self, user: str, database: str = DATABASE) -> str:
        """Return the connection string over a socket private to this user, independent of PG… variables."""
        place = f"host={self._paths.sockets}&port={PORT}"
        return f"postgresql://{user}@/{database}?{place}&sslmode=disable&target_session_attrs=any"

    def stop(self) -> None:
        """Release the server; the last user stops it."""
        with _exclusive_start(self._paths.home):
            try:
                fcntl.flock(self._users_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _wait_for(self._paths, "ready", "gone") == "ready":  # the server may have died already
                    _run_program(self._paths, "pg_ctl", "stop", "-W", "-m", "fast", "-D", str(self._paths.data))
                    _wait_for(self._paths, "gone")
            except BlockingIOError:
                pass  # another process still uses it
            finally:
                os.close(self._users_lock)

    def __enter__(self) -> "EmbeddedServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def _exclusive_start(home: Path) -> Generator[None]:
    """Hold the start lock, so that no other process starts or stops the server. It uses flock, because another part of
    this process that opens and closes the file does not drop that lock."""
    with _open_lock(home / START_LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def exclusive_access(home: Path) -> Generator[ServerPaths]:
    """Yield the paths of a server that is kept stopped. Raises ConflictError when it is in use."""
    ensure_private_folder(home)
    with _exclusive_start(home), _open_lock(home / USERS_LOCK) as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"A Newton process uses the data of {home}.", hint="Stop `newton serve` and other `newton` commands."
            ) from None
        place = resolve_paths(home)
        if _wait_for(place, "ready", "gone") == "ready":  # its last user was killed
            _run_program(place, "pg_ctl", "stop", "-W", "-m", "fast", "-D", str(place.data))
            _wait_for(place, "gone")
        yield place


@contextlib.contextmanager
def _open_lock(lock: Path) -> Generator[int]:
    """Yield a lock file descriptor; closing it releases the lock unless a child process inherited it."""
    file = os.open(lock, LOCK_FLAGS, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def delete_data(home: Path) -> None:
    """Delete the data of a stopped server, irrevocably."""
    if (home / "server.place").is_file() or (home / "postgres").is_dir():
        place = resolve_paths(home)
        shutil.rmtree(place.data, ignore_errors=True)
        if place.user:
            shutil.rmtree(place.base, ignore_errors=True)
            (home / "server.place").unlink()


def _initialize(paths: ServerPaths, *, durable: bool) -> None:
    """Create the data folder under a temporary name and rename it when it is complete."""
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
    """Return the status that the server last wrote; after a crash it is out of date."""
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
            return True  # the listen backlog is full
        except OSError:
            return False
    return True


def _is_alive(paths: ServerPaths) -> bool:
    """Return True when any process of the server holds the lock that it inherits at start."""
    with _open_lock(paths.base / LIFE_LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _wait_for(paths: ServerPaths, *wanted: ServerState) -> ServerState:
    """Wait for one of these states. Raises DatabaseError at the timeout."""
    end = monotonic_ms() + TIMEOUT_SECONDS * 1_000
    while (state := _state(paths)) not in wanted:
        if monotonic_ms() > end:
            raise _server_error(paths, f"after {TIMEOUT_SECONDS} seconds the server is still not {' or '.join(wanted)}")
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
        # The shell exits at once, which orphans the server. pg_ctl rejects a path with a quote.
        _run_program(paths, "/bin/sh", "-c", '"$@" >>"$0" 2>&1 &', str(paths.log), *server, inherited=life)
    if _wait_for(paths, "ready", "gone") == "gone":
        raise _server_error(paths, "the server exited at once")


def _mark_locks_stale(paths: ServerPaths) -> None:
    """Make the lock files of a dead server stale to PostgreSQL by writing this process's id, which it accepts as its
    own starter. The other lines stay: PostgreSQL uses them to check that no process still uses the data."""
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
    # A new session, so that Ctrl-C in a terminal does not reach the server. The server outlives this process and must
    # not hold a pipe that a parent reads to end of file.
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
    """Yield a server with a temporary home, for tests and benchmarks."""
    home = Path(tempfile.mkdtemp(prefix="newton-"))
    try:
        with EmbeddedServer.start(home, durable=durable) as server:
            yield server
        delete_data(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
