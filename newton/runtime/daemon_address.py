"""The file `daemon.json`, in which a running daemon publishes its URL for clients on the same machine."""

import fcntl
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from newton import __version__

ADDRESS_FILE, LOCK_FILE = "daemon.json", "daemon.lock"


class DaemonAddress(NamedTuple):
    """The URL and the version of a running daemon."""

    url: str
    version: str


@contextmanager
def publish_address(home: Path, url: str) -> Generator[bool]:
    """Write the address file, and delete it after the block. Yield whether it was written.

    While another daemon of the folder runs, its file is left unchanged. A lock says so, because the file of a killed
    daemon stays.
    """
    with (home / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        address, path = DaemonAddress(url=url, version=__version__), home / ADDRESS_FILE
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(address._asdict()) + "\n", encoding="utf-8")
        draft.replace(path)
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def read_address(home: Path) -> DaemonAddress | None:
    """Return the content of the address file; None if it is missing or invalid. A killed daemon leaves its file."""
    try:
        fields = json.loads((home / ADDRESS_FILE).read_bytes())
        return DaemonAddress(url=fields["url"], version=fields["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
