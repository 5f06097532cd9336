"""Access to files that somebody else names or wrote: only regular files, up to a size, and no links out of a folder."""

import errno
import os
from collections.abc import Collection
from io import BufferedReader, BufferedWriter
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISREG, S_ISVTX

NOT_REGULAR = "it is not a regular file"
PASSED_PIPES = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")  # the input of a command, which its caller opened


def open_regular(path: Path, *, within: Path | None = None) -> BufferedReader:
    """Open a file for reading. A pipe, a device or a socket would keep the thread waiting, so it is refused.

    Raises OSError if the path is no regular file, or is a link to a place outside of the folder `within`.
    """
    if within and not is_inside(path, within):
        raise OSError(errno.ELOOP, f"it is a link to a place outside of {within}", str(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not S_ISREG(mode):
        os.close(descriptor)
        number = errno.EISDIR if S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(number) if S_ISDIR(mode) else NOT_REGULAR, str(path))
    return os.fdopen(descriptor, "rb")


def open_input(path: Path) -> BufferedReader:
    """Open a regular file, or a pipe that the caller of a command has passed to it. Raises OSError for any other."""
    return path.open("rb") if is_passed_pipe(path) else open_regular(path)


def is_passed_pipe(path: Path) -> bool:
    """Return whether a path is that of a pipe that the caller of a command has passed to it, such as `/dev/stdin`."""
    return str(path).startswith(PASSED_PIPES) and not path.is_file()


def read_regular(path: Path, *, max_bytes: int, within: Path | None = None) -> bytes:
    """Return the content of a regular file. Raises OSError as `open_regular` does, and for more than `max_bytes`."""
    with open_regular(path, within=within) as file:
        raw = file.read(max_bytes + 1)  # the size of a file can change while it is read
    if len(raw) > max_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes", str(path))
    return raw


def create_private(path: Path) -> BufferedWriter:
    """Create a file that only its owner can read, in place of any file or link of that name. Raises OSError."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path, with all its links followed, is in a folder."""
    return path.resolve().is_relative_to(folder.resolve())


def find_exposure(folder: Path) -> str | None:
    """Return who besides this user can enter a data folder, and why that stays; None if nobody can.

    A folder that this user may close to others without harm has no reason: the result is an empty text.
    """
    status = folder.stat()
    if not status.st_mode & 0o077:
        return None
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    is_shared = status.st_mode & S_ISVTX or folder.resolve() in (Path.home().resolve(), Path("/"))
    return "it is not a folder of Newton's alone" if is_shared else ""


def close_folder(folder: Path, *, kept: Collection[str]) -> bool:
    """Take the access of other users to a data folder and its files away. Return False if there was none to take.

    Files and folders with the names `kept` are left as they are. Raises OSError.
    """
    if not folder.is_dir() or find_exposure(folder) != "":
        return False
    folder.chmod(0o700)
    for path in (*folder.glob("*"), *folder.glob("*/*")):
        status = path.lstat()
        is_own = status.st_uid == os.geteuid() and (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode))
        if is_own and not {path.name, path.parent.name} & {*kept}:
            path.chmod(S_IMODE(status.st_mode) & 0o700)
    return True
