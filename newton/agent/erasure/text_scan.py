"""The scan of everything that is stored for an agent: each text of each table, and log files."""

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.agent.erasure", "text_scan.sql")

ARCHIVED = "memory.archived_texts"
_CHUNK_BYTES = 1 << 20
_MAX_NAME_BYTES = 400
_MASK = b"x"


async def list_archived_texts(tx: Tx, *, agent_id: UUID) -> dict[UUID, str]:
    """Return the full texts that are stored compressed, by memory."""
    rows = await SQL["list_archived_texts"].fetch_all(tx, agent_id=agent_id)
    return {row["memory_id"]: zlib.decompress(row["compressed"]).decode() for row in rows}


async def count_matches(tx: Tx, pattern: str, *, agent_id: UUID) -> dict[str, int]:
    """Return the number of rows with a text that matches the pattern, by table. Tables without matches are left out."""
    found = dict[str, int]()
    for table in await SQL["list_tables"].fetch_all(tx):
        row = await SQL["count_matches"].fetch_one(tx, agent_id=agent_id, table_name=table["name"], pattern=pattern)
        assert row is not None
        found[table["name"]] = row["found"]
    expression = re.compile(pattern)
    archived = await list_archived_texts(tx, agent_id=agent_id)
    found[ARCHIVED] = sum(bool(expression.search(text)) for text in archived.values())
    return {name: number for name, number in found.items() if number}


def count_in_logs(paths: Iterable[Path], pattern: str) -> dict[str, int]:
    """Return how often the pattern is found in log files, by path. Files without a match are left out."""
    return {str(path): found for path in paths if (found := sum(1 for _ in _find_in_file(path, pattern)))}


def mask_in_logs(paths: Iterable[Path], pattern: str) -> None:
    """Overwrite what the pattern finds in log files in place, so that a process that appends to a file can go on."""
    for path in paths:
        with path.open("r+b") as file:
            for start, length in list(_find_in_file(path, pattern)):
                file.seek(start)
                file.write(_MASK * length)


def _find_in_file(path: Path, pattern: str) -> Iterator[tuple[int, int]]:
    """Yield the offset and length in bytes of each match in a file, which is read in overlapping chunks."""
    expression, seen = re.compile(pattern), -1
    with path.open("rb") as file:
        start = 0
        while chunk := file.read(_CHUNK_BYTES):
            text = chunk.decode("utf-8", "surrogateescape")
            for match in expression.finditer(text):
                offset, length = _count_bytes(text[: match.start()]), _count_bytes(match[0])
                if start + offset > seen and offset + length < _CHUNK_BYTES:
                    seen = start + offset
                    yield seen, length
            if len(chunk) < _CHUNK_BYTES:
                break
            start += _CHUNK_BYTES - _MAX_NAME_BYTES
            file.seek(start)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
