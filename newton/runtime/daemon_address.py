"""The file `daemon.json`, in which a running daemon publishes its URL for clients on the same machine."""

import fcntl
import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from newton import __version__

ADDRESS_FILE, LOCK_FILE = "daemon.json", "daemon.lock"


class DaemonAddress(NamedTuple):
    """The URL and the version of a running daemon, and a random id of this run of it."""

    url: str
    version: str
    run_id: str


@contextmanager
def publish_address(home: Path, url: str) -> Generator[bool]:
    """Write the address file of this daemon, and delete it after the block. Yield whether it was written.

    While another daemon of the folder runs, its file is left unchanged. A lock on the folder shows whether one runs,
    because a killed daemon leaves its file.
    """
    with (home / LOCK_FILE).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        address, path = DaemonAddress(url, __version__, secrets.token_hex(8)), home / ADDRESS_FILE
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
        return DaemonAddress(fields["url"], fields["version"], fields.get("run_id", ""))
    except (OSError, ValueError, KeyError, TypeError):
        return None
