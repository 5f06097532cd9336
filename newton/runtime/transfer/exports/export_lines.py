"""Conversion of the entries of exports to the items of an import."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeGuard, cast

from pydantic import JsonValue

from newton.errors import NewtonError
from newton.memory.hygiene import MAX_NAME_CHARACTERS
from newton.memory.memory import Trust, digest
from newton.runtime.transfer.import_lines import MessageItem
from newton.runtime.transfer.import_source import SourceEntry, convert_line

JsonObject = Mapping[str, JsonValue]
MAX_PLACE_CHARS = 300
MAX_SECONDS = 1e11  # since 1970; a larger number is one of milliseconds
_NUMBER = re.compile(r"\d{9,}(?:\.\d+)?")


ExportLine = tuple[str, JsonObject | NewtonError]  # the place of an entry, and its import line or why it has none


def convert_lines(lines: Iterable[ExportLine], *, min_trust: Trust | None = None) -> Iterator[SourceEntry]:
    """Convert import lines (JSON objects as in an NDJSON file) to the items to store, each with its place and size.

    For a line that is rejected, yield the error. Messages have the trust of their role, or `min_trust` if it is lower.
    """
    occurrences: Counter[str] = Counter()
    for found, line in lines:
        place = _clean_place(found)
        if isinstance(line, NewtonError):
            yield SourceEntry(place, 0, line)
            continue
        key = repr(line)
        try:
            item = convert_line(line, key=key, occurrence=occurrences[key])
            if isinstance(item, MessageItem):
                item = item._replace(message=replace(item.message, min_trust=min_trust))
            yield SourceEntry(place, len(key), item)
        except NewtonError as error:
            yield SourceEntry(place, 0, error)
        occurrences[key] += 1


def _clean_place(place: str) -> str:
    """Return a place on one line of limited length, without halves of characters, which no output can encode."""
    line = " ".join(place.split()).encode(errors="replace").decode()
    return line if len(line) <= MAX_PLACE_CHARS else f"…{line[1 - MAX_PLACE_CHARS :]}"


def derive_ref(kind: str, *parts: str) -> str:
    """Return an identifier for an entry without one: `kind` and a hash of `parts`, the same in each import."""
    return f"{kind}:{digest(*(part.encode(errors='replace').decode() for part in parts)).hex()}"


def list_objects(value: JsonValue | None) -> list[JsonObject]:
    """Return the objects in a JSON list, or a single object as a list; nothing for another value."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if is_object(one)]


def is_object(value: JsonValue | None) -> TypeGuard[dict[str, JsonValue]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def extract_text(value: JsonValue | None) -> str:
    """Return the text of a JSON value: a string, or the text parts of a list, one below the other."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        parts = (extract_text(part.get("text") if is_object(part) else part) for part in value)
        return "\n".join(part for part in parts if part)
    return ""


def find_time(*values: JsonValue | None) -> str | None:
    """Return the first value that is a time, as text: ISO 8601, or seconds or milliseconds since 1970.

    A time without a zone is in UTC.
    """
    for value in values:
        time = _parse_time(value)
        if time:
            return time.astimezone(UTC).isoformat()
    return None


def _parse_time(value: JsonValue | None) -> datetime | None:
    try:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1_000 if value > MAX_SECONDS else value, UTC)
        if isinstance(value, str) and value:
            time = datetime.fromisoformat(value.strip().replace(" UTC", "+00:00"))
            return time if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def build_message_line(
    *, session: str, ref: str, role: str, content: str, at: str | None, name: str | None = None
) -> JsonObject:
    """Return the import line of a message."""
    line: dict[str, JsonValue] = {"type": "message", "session": session, "ref": ref, "role": role, "content": content}
    return line | ({"name": name} if name else {}) | ({"at": at} if at else {})


def build_fact_line(
    *, ref: str, content: str, at: str | None, subject: str | None = None, tags: Sequence[str] = ()
) -> JsonObject:
    """Return the import line of a fact."""
    line: dict[str, JsonValue] = {"type": "fact", "ref": ref, "content": content}
    named: dict[str, JsonValue] = {"subject": subject, "tags": [*tags], "at": at}
    return line | {name: value for name, value in named.items() if value}


def build_document_line(*, ref: str, title: str, content: str) -> JsonObject:
    """Return the import line of a document. Its format is Markdown if the title ends with ".md", else plain text."""
    kind = "markdown" if title.endswith(".md") else "text"
    name = " ".join(title.split())[:MAX_NAME_CHARACTERS]
    return {"type": "document", "ref": ref, "title": name, "format": kind, "content": content}


def read_change_time(path: Path) -> str | None:
    """Return the time of the last change of a file, as text, for entries without a time; None if it is unknown."""
    try:
        return find_time(path.stat().st_mtime)
    except OSError:  # a pipe, or no file any more
        return None


def list_strings(values: Sequence[JsonValue] | JsonValue | None) -> list[str]:
    """Return the strings in a JSON list."""
    return [one for one in cast(list[JsonValue], values) if isinstance(one, str)] if isinstance(values, list) else []
