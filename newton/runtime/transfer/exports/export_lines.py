"""Conversion of the entries of exports to the items of an import."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeGuard, cast

from pydantic import JsonValue

from newton.errors import NewtonError
from newton.runtime.transfer.import_source import SourceLine
from newton.runtime.transfer.ndjson import convert_line

JsonObject = Mapping[str, JsonValue]


def number_lines(lines: Iterable[JsonObject]) -> Iterator[SourceLine]:
    """Yield each import line as its item or the reason why it is rejected, with its number and about its size."""
    occurrences: Counter[str] = Counter()
    for number, line in enumerate(lines, start=1):
        key = repr(line)
        try:
            yield number, len(key), convert_line(line, key=key, occurrence=occurrences[key])
        except NewtonError as error:
            yield number, 0, error
        occurrences[key] += 1


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
    """Return the first value that is a time, as text: ISO 8601, or seconds since 1970. Without a zone it is UTC."""
    for value in values:
        time = _parse_time(value)
        if time:
            return time.astimezone(UTC).isoformat()
    return None


def _parse_time(value: JsonValue | None) -> datetime | None:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str) and value:
            time = datetime.fromisoformat(value.replace(" UTC", "+00:00"))
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


def build_fact_line(*, ref: str, content: str, at: str | None, subject: str | None = None) -> JsonObject:
    """Return the import line of a fact."""
    line: dict[str, JsonValue] = {"type": "fact", "ref": ref, "content": content}
    return line | ({"subject": subject} if subject else {}) | ({"at": at} if at else {})


def list_strings(values: Sequence[JsonValue] | JsonValue | None) -> list[str]:
    """Return the strings in a JSON list."""
    return [one for one in cast(list[JsonValue], values) if isinstance(one, str)] if isinstance(values, list) else []
