"""The Unix domain socket of a data folder, on which its daemon serves HTTP to processes of the same user.

It serves the HTTP API, for which no token is needed there, and POST COMMANDS_PATH, which runs a command line, a line of
JSON. The response has `stdout`, `stderr` and `flush` messages and ends with `exit`, or with `declined`, before any
output, if the caller must run the command in its own process. The request stays open; its end, or that of the
connection, cancels the command.

A caller asks first whether its request is taken (`Expect: 100-continue`), so that a daemon that hangs, or is of another
version, gets nothing.
"""

import json
import os
import socket
import struct
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from newton import __version__

FOLDER, SOCKET_FILE = "run", "daemon.sock"
PATH_LIMIT = 100  # bytes; the kernel allows 107
BACKLOG = 64  # connections that wait to be accepted
_PEER_FORMAT = "3i"  # process, user and group id of SO_PEERCRED
LOCAL_PREFIX = "/local/"  # of the paths that only this socket serves
COMMANDS_PATH = f"{LOCAL_PREFIX}{__version__}/commands"

Message = Mapping[str, Any]


class SocketUnavailableError(Exception):
    """The socket cannot be opened; the text of the exception gives the reason."""


@contextmanager
def listen(home: Path) -> Generator[socket.socket]:
    """Yield a listening socket in a folder that only this user may enter, and delete its file after the block.

    The caller holds the lock of the data folder, so that a socket which is there is left by a dead daemon. Raises
    SocketUnavailableError if the folder cannot be used, or if the system does not report the user of a connecting
    process.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        raise SocketUnavailableError("this system does not report which user opens a socket")
    folder = home / FOLDER
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _listen(listener, folder)
        except OSError as error:
            raise SocketUnavailableError(f"{folder} cannot be used: {error.strerror or error}") from None
        try:
            yield listener
        finally:
            (folder / SOCKET_FILE).unlink(missing_ok=True)


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


class LocalRequest:
    """A POST request to the daemon, without an HTTP library, because loading one takes longer than a short command.

    Its message is sent only after the daemon has accepted the request (100 Continue).
    """

    def __init__(self, connection: socket.socket, stream: BufferedReader) -> None:
        self._connection, self._stream = connection, stream
        self._messages = self._read_messages()

    @classmethod
    def open(cls, home: Path, path: str, *, seconds: float) -> "LocalRequest | None":
        """Return a request to the daemon of a data folder; None if none of this version accepts it within `seconds`."""
        connection = connect(home)
        if connection is None:
            return None
        connection.settimeout(seconds)
        request = cls(connection, connection.makefile("rb"))
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        with suppress(OSError):
            connection.sendall(head.encode())
            if request._read_status() == b"100":
                connection.settimeout(None)
                return request
        request.close()
        return None

    def send(self, message: Message, *, seconds: float | None = None) -> None:
        """Send the message of the request, whose response may take `seconds`.

        Raises TypeError for a value that JSON cannot hold, OSError if the connection is broken.
        """
        line = encode(message)
        self._connection.settimeout(seconds)
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))

    def end(self) -> None:
        """End the request, which cancels the command."""
        with suppress(OSError):
            self._connection.sendall(b"0\r\n\r\n")

    def read(self) -> Message | None:
        """Return the next message of the response; None if the connection ends, or after the seconds of the request."""
        try:
            return next(self._messages, None)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._connection.close()

    def _read_messages(self) -> Iterator[Message]:
        if self._read_status() != b"200":
            return
        rest = b""
        while size := int(self._stream.readline(), 16):
            *lines, rest = (rest + self._stream.read(size)).split(b"\n")
            self._stream.readline()
            yield from map(json.loads, lines)

    def _read_status(self) -> bytes:
        """Return the status of the next response, after its head is read; nothing if there is none."""
        protocol, _, status = self._stream.readline().partition(b" ")
        if protocol != b"HTTP/1.1":
            return b""
        while self._stream.readline().strip():
            pass
        return status[:3]


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


def _listen(listener: socket.socket, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.lstat().st_uid != os.geteuid():
        raise SocketUnavailableError(f"{folder} belongs to another user")
    folder.chmod(0o700)
    (folder / SOCKET_FILE).unlink(missing_ok=True)
    with short_path(folder) as path:
        listener.bind(path)
    (folder / SOCKET_FILE).chmod(0o600)  # before `listen`, until when nobody can connect
    listener.listen(BACKLOG)
