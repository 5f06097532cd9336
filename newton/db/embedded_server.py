"""The embedded server: PostgreSQL with pgvector from a Python package, which runs while any process uses it.

Each process that uses the server has a shared file lock, which the kernel releases when the process ends. The last
process stops the server. The server's own processes have such a lock too, so Newton never has to trust a process id,
which the system may have given to another process.
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
    POINTER_FILE,
    PORT,
    SOCKET,
    ServerPaths,
    ensure_private_folder,
    ensure_socket_folder,
    require_server,
    resolve_paths,
)
from newton.errors import ConflictError, DatabaseError

DATABASE = "postgres"  # created by initdb
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
# statistics on rows that tests roll back would make plans worse than no statistics
autovacuum = off
"""

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/", "TZ": "UTC"}

# PostgreSQL's builtin provider folds case and sorts by code point. Its text search parser takes the letter classes from
# the system's locale; every system has at least one of these.
LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
CTYPES = ("C.UTF-8", "en_US.UTF-8")

# busy: the server is starting or stopping, or processes of a crashed server remain.
ServerState = Literal["ready", "busy", "gone"]


class EmbeddedServer:
    """A handle on a running server, which other processes may share. Call `stop()` when it is no longer used."""

    def __init__(self, paths: ServerPaths, users_lock: int) -> None:
        self.paths, self._users_lock = paths, users_lock

    @classmethod
    def start(cls, home: Path, *, durable: bool = True) -> "EmbeddedServer":
        """Start the server of the data folder `home`, or use the one that runs.

        Raises DatabaseError if it does not start. With `durable=False` the server is faster and may lose data in a
        crash.
        """
        require_server()
        ensure_private_folder(home)
        with _exclusive_start(home):
            paths = resolve_paths(home)
            _initialize(paths, durable=durable)
            _ensure_running(paths)
            users_lock = os.open(home / USERS_LOCK, LOCK_FLAGS, 0o600)
            fcntl.flock(users_lock, fcntl.LOCK_SH)
        return cls(paths, users_lock)

    def revive(self) -> None:
        """Start the server again if it has died. Raises DatabaseError if it does not start."""
        if _state(self.paths) != "ready":
            with _exclusive_start(self.paths.home):
                _ensure_running(self.paths)

    def dsn(self, user: str, database: str = DATABASE) -> str:
        """Return a connection string for this user and database, over a Unix socket of this system user only.

        It does not depend on environment variables such as PGHOST.
        """
        address = f"host={self.paths.sockets}&port={PORT}"
        return f"postgresql://{user}@/{database}?{address}&sslmode=disable&target_session_attrs=any"

    def stop(self) -> None:
        """Stop using the server. If no other process uses it, it ends."""
        with _exclusive_start(self.paths.home):
            try:
                if _try_lock(self._users_lock):
                    _ensure_stopped(self.paths)
            finally:
                os.close(self._users_lock)

    def __enter__(self) -> "EmbeddedServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def _exclusive_start(home: Path) -> Generator[None]:
    """Hold the start lock while the block runs, so that one process at a time starts or stops the server.

    It is a flock: a POSIX lock would end when this process closes the file elsewhere.
    """
    with _open_lock(home / START_LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def exclusive_access(home: Path) -> Generator[ServerPaths]:
    """Stop the server, yield its paths, and keep it stopped in the block. Raises ConflictError if a process uses it."""
    require_server()
    ensure_private_folder(home)
    with _exclusive_start(home), _open_lock(home / USERS_LOCK) as users:
        if not _try_lock(users):
            hint = "Stop `newton serve` and other running `newton` commands."
            raise ConflictError(f"Another Newton process uses the data in {home}.", hint=hint)
        paths = resolve_paths(home)
        _ensure_stopped(paths)
        yield paths


@contextlib.contextmanager
def _open_lock(lock: Path) -> Generator[int]:
    """Yield the file descriptor of a lock file. Closing it releases the lock, unless a child process inherited it."""
    file = os.open(lock, LOCK_FLAGS, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _try_lock(lock: int) -> bool:
    """Acquire the exclusive lock without waiting. Return False if another process has a lock on the file."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def delete_data(home: Path) -> None:
    """Permanently delete the database of the data folder `home`. Its server must be stopped."""
    if (home / POINTER_FILE).is_file() or (home / "postgres").is_dir():
        paths = resolve_paths(home)
        shutil.rmtree(paths.data, ignore_errors=True)
        if paths.user:
            shutil.rmtree(paths.base, ignore_errors=True)
            (home / POINTER_FILE).unlink()


def _initialize(paths: ServerPaths, *, durable: bool) -> None:
    """Create the database's files under a temporary name, and rename their folder when complete.

    Do nothing if it exists. Raises DatabaseError if it was created by another major version of PostgreSQL.
    """
    version = paths.data / "PG_VERSION"
    if version.is_file():
        if (found := version.read_text(encoding="ascii").strip()) != MAJOR:
            raise DatabaseError(
                f"{paths.data} was created by PostgreSQL {found}; the installed version is {MAJOR}.",
                hint=f"Set DATABASE_URL to a PostgreSQL {found} server, or move the folder away to start without data.",
            )
        return
    for abandoned in paths.base.glob("postgres.*.part"):
        shutil.rmtree(abandoned, ignore_errors=True)
    partial = paths.base / f"postgres.{uuid.uuid4().hex[:8]}.part"
    _initdb(paths, partial, durable=durable)
    with (partial / "postgresql.conf").open("a", encoding="utf-8") as config:
        config.write(CONFIG if durable else CONFIG + NON_DURABLE_CONFIG)
    partial.rename(paths.data)


def _initdb(paths: ServerPaths, folder: Path, *, durable: bool) -> None:
    fixed = ("-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-instructions", *LOCALE)
    if not durable:
        fixed += ("--no-sync",)  # to write the files to the disk, and later to delete them there, takes seconds
    errors = ""
    for ctype in CTYPES:
        if not (errors := _run_process(paths, "initdb", "-D", str(folder), f"--lc-ctype={ctype}", *fixed)):
            return
    raise _server_error(paths, f"initdb: {errors}")


def _state(paths: ServerPaths) -> ServerState:
    if _reported_status(paths) == "ready" and _is_listening(paths):
        return "ready"
    return "busy" if _is_alive(paths) or _is_listening(paths) else "gone"


def _reported_status(paths: ServerPaths) -> str:
    """Return the status that the server wrote last; after a crash it is out of date."""
    return next((line.strip() for line in _read_lines(paths.data / "postmaster.pid")[7:]), "")


def _is_listening(paths: ServerPaths) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(0)
        try:
            client.connect(str(paths.sockets / SOCKET))
        except BlockingIOError:
            return True  # the listen backlog is full
        except OSError:
            return False
    return True


def _is_alive(paths: ServerPaths) -> bool:
    """Return whether a process of the server runs: each of its processes holds the lock on a file from its start."""
    with _open_lock(paths.base / LIFE_LOCK) as lock:
        return not _try_lock(lock)


def _wait_for(paths: ServerPaths, *states: ServerState) -> ServerState:
    """Wait until the server is in one of the states; return the state. Raises DatabaseError after TIMEOUT_SECONDS."""
    end = monotonic_ms() + TIMEOUT_SECONDS * 1_000
    while (state := _state(paths)) not in states:
        if monotonic_ms() > end:
            raise _server_error(paths, f"after {TIMEOUT_SECONDS} seconds the server is still not {' or '.join(states)}")
        time.sleep(0.005)
    return state


def _ensure_stopped(paths: ServerPaths) -> None:
    if _wait_for(paths, "ready", "gone") == "ready":
        _run_program(paths, "pg_ctl", "stop", "-W", "-m", "fast", "-D", str(paths.data))
        _wait_for(paths, "gone")


def _ensure_running(paths: ServerPaths) -> None:
    """Start the server if it does not run. Raises DatabaseError if it does not accept connections in time."""
    if _wait_for(paths, "ready", "gone") == "ready":
        return
    if paths.log.is_file() and paths.log.stat().st_size > MAX_LOG_BYTES:
        paths.log.unlink()
    if paths.sockets != paths.base:
        ensure_socket_folder(paths.sockets)
    _mark_locks_stale(paths)
    options = (f"unix_socket_directories={paths.sockets}", f"port={PORT}")
    server = (str(paths.binaries / "postgres"), "-D", str(paths.data), "-c", options[0], "-c", options[1])
    with _open_lock(paths.base / LIFE_LOCK) as life:
        fcntl.flock(life, fcntl.LOCK_EX)
        # The shell exits at once and orphans the server. pg_ctl cannot start it: it rejects a path with a quote.
        _run_program(paths, "/bin/sh", "-c", '"$@" >>"$0" 2>&1 &', str(paths.log), *server, inherited=life)
    if _wait_for(paths, "ready", "gone") == "gone":
        raise _server_error(paths, "the server exited right after its start")


def _mark_locks_stale(paths: ServerPaths) -> None:
    """Make PostgreSQL ignore the lock files of a dead server.

    The process id in them is replaced by the id of this process, which the new server ignores. The other lines stay,
    because PostgreSQL uses them to check that no process still uses the data.
    """
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
    if errors := _run_process(paths, program, *arguments, inherited=inherited):
        raise _server_error(paths, f"{program}: {errors}")


def _run_process(paths: ServerPaths, program: str, *arguments: str, inherited: int | None = None) -> str:
    """Run a program as the server's user; return its error output if it fails, otherwise an empty string."""
    owner = pwd.getpwnam(paths.user) if paths.user else None
    # A new session, so that Ctrl-C in a terminal does not reach the server. The output goes to a file: the server
    # outlives this process, and a reader of a pipe would wait for its end.
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            [str(paths.binaries / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env={**ENVIRONMENT, "PG_GRANDPARENT_PID": str(os.getpid())},  # see _mark_locks_stale
            start_new_session=True,
            umask=0o077,
            check=False,
            pass_fds=() if inherited is None else (inherited,),
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )
        errors.seek(0)
        return (" ".join(errors.read().split()) or "it failed without a message") if done.returncode else ""


def _server_error(paths: ServerPaths, detail: str) -> DatabaseError:
    lines = "".join(f"  {line}\n" for line in _read_lines(paths.log)[-5:])
    return DatabaseError(
        f"The embedded PostgreSQL failed ({detail})." + (f"\nThe end of its log:\n{lines}" if lines else ""),
        hint=f"Free disk space, check the permissions of {paths.base}, or set DATABASE_URL to a server of your own.",
    )


def _read_lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


@contextlib.contextmanager
def temporary_server(*, durable: bool = False) -> Generator[EmbeddedServer]:
    """Yield a server with a temporary data folder, which is deleted at the end. For tests and benchmarks."""
    home = Path(tempfile.mkdtemp(prefix="newton-"))
    try:
        with EmbeddedServer.start(home, durable=durable) as server:
            yield server
        delete_data(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
