"""The scan of everything that is stored for an agent: each text of each table, and log files."""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.agent.erasure", "text_scan.sql")

ARCHIVED = "memory.archived_texts"
_INDEXES = ("memory.postings", "heart.entity_names", "heart.mentions")  # repeat words of other tables in lower case
_DERIVED_COLUMNS = {"heart.entities": "key", "heart.facts": "subject_key"}  # another column in lower case
_NO_TEXT = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.+Z-]+|\\x[0-9a-f]*|[\W\d]*")
_CHUNK_BYTES = 1 << 20
_MAX_SPELLING_BYTES = 400
_MASK = b"x"


async def list_lines(tx: Tx, *, agent_id: UUID) -> list[str]:
    """Return each distinct line of each text that is stored for the agent."""
    lines = dict[str, None]()
    for table in await SQL["list_tables"].fetch_all(tx):
        if table["name"] in _INDEXES:
            continue
        for row in await SQL["list_rows"].fetch_all(tx, agent_id=agent_id, table_name=table["name"]):
            columns = json.loads(row["line"])
            columns.pop(_DERIVED_COLUMNS.get(table["name"]), None)
            for text in _list_texts(columns):
                lines.update(dict.fromkeys(text.splitlines()))
    for text in (await list_archived_texts(tx, agent_id=agent_id)).values():
        lines.update(dict.fromkeys(text.splitlines()))
    return list(lines)


async def list_archived_texts(tx: Tx, *, agent_id: UUID) -> dict[UUID, str]:
    """Return the full texts that are stored compressed, by memory."""
    rows = await SQL["list_archived_texts"].fetch_all(tx, agent_id=agent_id)
    return {row["memory_id"]: zlib.decompress(row["compressed"]).decode() for row in rows}


async def count_matches(tx: Tx, pattern: str, *, agent_id: UUID) -> dict[str, int]:
    """Return the number of rows, by table, of which a text matches the pattern. Tables without one are left out."""
    found = dict[str, int]()
    for table in await SQL["list_tables"].fetch_all(tx):
        row = await SQL["count_matches"].fetch_one(tx, agent_id=agent_id, table_name=table["name"], pattern=pattern)
        assert row is not None
        found[table["name"]] = row["found"]
    expression = re.compile(pattern)
    archived = await list_archived_texts(tx, agent_id=agent_id)
    found[ARCHIVED] = sum(bool(expression.search(text)) for text in archived.values())
    return {name: number for name, number in found.items() if number}


def count_in_logs(paths: Iterable[Path], spellings: Iterable[str]) -> dict[str, int]:
    """Return how often log files contain a spelling as a whole word, by path. Files without one are left out."""
    expression = _bytes_pattern(spellings)
    return {str(path): found for path in paths if (found := sum(1 for _ in _find_in_file(path, expression)))}


def mask_in_logs(paths: Iterable[Path], spellings: Iterable[str]) -> None:
    """Overwrite the spellings in log files in place, so that a process that appends to a file can go on."""
    expression = _bytes_pattern(spellings)
    for path in paths:
        with path.open("r+b") as file:
            for start, length in list(_find_in_file(path, expression)):
                file.seek(start)
                file.write(_MASK * length)


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if not _NO_TEXT.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            yield key
            yield from _list_texts(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _list_texts(one)


def _bytes_pattern(spellings: Iterable[str]) -> re.Pattern[bytes]:
    names = sorted((re.escape(one.encode()) for one in spellings), key=len, reverse=True)
    return re.compile(rb"(?<![\w\x80-\xff])(?:" + b"|".join(names) + rb")(?![\w\x80-\xff])")


def _find_in_file(path: Path, expression: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each match in a file, which is read in overlapping chunks."""
    seen = -1
    with path.open("rb") as file:
        start = 0
        while chunk := file.read(_CHUNK_BYTES):
            for match in expression.finditer(chunk):
                if (offset := start + match.start()) > seen and match.end() < _CHUNK_BYTES:
                    seen = offset
                    yield offset, len(match[0])
            if len(chunk) < _CHUNK_BYTES:
                break
            start += _CHUNK_BYTES - _MAX_SPELLING_BYTES
            file.seek(start)
