"""The Unix domain socket of a data folder, through which commands run in the daemon, and its messages.

A message is a JSON object on one line. The daemon first sends `version`; a caller sends nothing before that. The caller
then sends one request: a command (`argv`) or an event of a coding agent (`hook`). While a command runs, the caller may
send `cancel`. The daemon answers a command with `stdout`, `stderr` and
`flush` messages and ends with `exit`; it answers an event with one message. It ends with `declined`, before any output,
if the caller must run the command or handle the event in its own process.
"""

import fcntl
import json
import os
import socket
import struct
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

FOLDER, SOCKET_FILE, LOCK_FILE = "run", "daemon.sock", "daemon.lock"
PATH_LIMIT = 100  # bytes; the kernel allows 107
BACKLOG = 64  # connections that wait to be accepted
_PEER_FORMAT = "3i"  # process, user and group id of SO_PEERCRED

Message = Mapping[str, Any]


class SocketUnavailableError(Exception):
    """The command socket cannot be opened; the text of the exception gives the reason."""


class CommandSocket:
    """The listening socket of a daemon. It holds the lock of the data folder until it is closed or the process ends."""

    def __init__(self, listener: socket.socket, lock: int, path: Path) -> None:
        self.listener, self._lock, self._path = listener, lock, path

    @classmethod
    def listen(cls, home: Path) -> "CommandSocket":
        """Create the socket in a folder that only this user may enter, replacing one left by a dead daemon.

        Raises SocketUnavailableError if another daemon holds the lock, if the folder cannot be used, or if the system
        does not report the user of a connecting process.
        """
        if not hasattr(socket, "SO_PEERCRED"):
            raise SocketUnavailableError("this system does not report which user opens a socket")
        folder = home / FOLDER
        try:
            _create_private_folder(folder)
            with ExitStack() as undo:
                lock = _acquire_lock(folder / LOCK_FILE)
                undo.callback(os.close, lock)
                listener = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                _listen(listener, folder)
                undo.pop_all()
            return cls(listener, lock, folder / SOCKET_FILE)
        except OSError as error:
            raise SocketUnavailableError(f"{folder} cannot be used: {error.strerror or error}") from None

    def close(self) -> None:
        """Delete the socket file, close the socket and release the lock."""
        self._path.unlink(missing_ok=True)
        self.listener.close()
        os.close(self._lock)


def connect(home: Path) -> socket.socket | None:
    """Connect to the daemon of a data folder; return None if no daemon of this user listens there."""
    folder = home / FOLDER
    if not hasattr(socket, "SO_PEERCRED") or not (folder / SOCKET_FILE).exists():
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(OSError):  # a dead daemon's socket, or one of another user
        with short_path(folder) as path:
            connection.connect(path)
        # what is sent contains the caller's keys: another user could have put a socket into a shared folder
        if is_own_peer(connection):
            return connection
    connection.close()
    return None


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether the process at the other end of the connection runs as the current user."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_PEER_FORMAT))
    _, user, _ = struct.unpack(_PEER_FORMAT, credentials)
    return user == os.geteuid()


@contextmanager
def short_path(folder: Path) -> Generator[str]:
    """Yield a path of the socket file that is at most `PATH_LIMIT` bytes long, as the kernel requires.

    For a longer path, yield an equivalent one under /proc/self/fd. On a system without /proc, its use raises OSError.
    """
    path = os.fsencode(folder / SOCKET_FILE)
    if len(path) <= PATH_LIMIT:
        yield os.fsdecode(path)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_FILE}"
    finally:
        os.close(descriptor)


def encode(message: Message) -> bytes:
    """Encode a message as one line of JSON. Raises TypeError for a value that JSON cannot represent."""
    return json.dumps(message).encode() + b"\n"


def _create_private_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.lstat().st_uid != os.geteuid():
        raise SocketUnavailableError(f"{folder} belongs to another user")
    folder.chmod(0o700)


def _acquire_lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    os.close(lock)
    raise SocketUnavailableError("another daemon of this data folder already accepts commands")


def _listen(listener: socket.socket, folder: Path) -> None:
    """Bind the socket and listen. The caller holds the lock, so an existing socket file is left by a dead daemon."""
    (folder / SOCKET_FILE).unlink(missing_ok=True)
    with short_path(folder) as path:
        listener.bind(path)
    (folder / SOCKET_FILE).chmod(0o600)  # before `listen`, until when nobody can connect
    listener.listen(BACKLOG)
    listener.settimeout(0)  # not blocking
