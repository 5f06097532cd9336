"""The spool file of the data folder: messages and events of hooks that the daemon could not store yet."""

import fcntl
import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from newton.runtime.hooks.hook_input import JsonObject, as_object

SPOOL_FILE, LOCK_FILE = "hooks.ndjson", "hooks.lock"
MAX_SPOOL_BYTES = 4 * 1024 * 1024  # beyond, new entries are dropped
MAX_BATCH_BYTES, MAX_BATCH_ENTRIES = 512 * 1024, 200  # handed over with one request


class SpoolEntry(NamedTuple):
    """Messages and events of one session of an agent, to be stored later."""

    agent: str
    session: str
    messages: list[JsonObject]
    events: list[JsonObject]


def add_entry(data_dir: Path, entry: SpoolEntry) -> bool:
    """Append an entry to the spool file; return False if the file is full or cannot be written."""
    line = json.dumps(entry._asdict(), separators=(",", ":")).encode() + b"\n"
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(data_dir):
            path = data_dir / SPOOL_FILE
            if (path.stat().st_size if path.exists() else 0) + len(line) > MAX_SPOOL_BYTES:
                return False
            with _open_private(path, os.O_APPEND) as file:
                file.write(line)
    except OSError:
        return False
    return True


def read_batch(data_dir: Path, *, agent: str, session: str | None = None) -> tuple[SpoolEntry, list[bytes]]:
    """Return the oldest entries of one session, merged into one that fits a request, and their lines in the file.

    None as `session` is the session with the oldest entry of the agent. Without entries, there are no lines.
    """
    batch = SpoolEntry(agent, session or "", [], [])
    lines: list[bytes] = []
    for line in _read_lines(data_dir):
        entry = _parse_entry(line)
        if entry is None or entry.agent != agent or entry.session != (batch.session or entry.session):
            continue
        if lines and (sum(map(len, lines)) + len(line) > MAX_BATCH_BYTES or len(lines) >= MAX_BATCH_ENTRIES):
            break
        batch = SpoolEntry(agent, entry.session, batch.messages + entry.messages, batch.events + entry.events)
        lines.append(line)
    return batch, lines


def remove_lines(data_dir: Path, lines: Sequence[bytes]) -> None:
    """Remove these lines from the spool file, because they are stored now, and lines that are not valid entries."""
    try:
        with _lock(data_dir):
            kept = [line for line in _read_lines(data_dir) if line not in lines and _parse_entry(line)]
            path, new = data_dir / SPOOL_FILE, data_dir / f"{SPOOL_FILE}.new"
            if not kept:
                path.unlink(missing_ok=True)
                return
            with _open_private(new, os.O_TRUNC) as file:
                file.writelines(line + b"\n" for line in kept)
            new.replace(path)
    except OSError:
        return  # the lines are handed over again, which changes nothing


def count_entries(data_dir: Path) -> int:
    """Return the number of entries in the spool file."""
    return sum(_parse_entry(line) is not None for line in _read_lines(data_dir))


def _read_lines(data_dir: Path) -> list[bytes]:
    try:
        return (data_dir / SPOOL_FILE).read_bytes().splitlines()
    except OSError:
        return []


def _parse_entry(line: bytes) -> SpoolEntry | None:
    try:
        return SpoolEntry(**as_object(json.loads(line)))
    except (ValueError, TypeError):
        return None


def _open_private(path: Path, flag: int) -> BinaryIO:
    """Open a file for writing, creating it readable only by its owner."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o600), "wb")


@contextmanager
def _lock(data_dir: Path) -> Generator[None]:
    with _open_private(data_dir / LOCK_FILE, os.O_APPEND) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
