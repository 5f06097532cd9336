"""The sources of an import: where its items come from, what they are worth, and files with one JSON object per line."""

import codecs
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from newton.brain.decision_codec import NewDecision
from newton.content.file_formats import find_byte_order_mark
from newton.errors import InputError, NewtonError
from newton.file_access import open_input
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import Trust, digest
from newton.memory.redaction.tally import Redactions
from newton.runtime.transfer.import_lines import LINE_ADAPTER, LINE_TYPES, DocumentItem, ImportItem, MessageItem


class SourceEntry(NamedTuple):
    """An entry of a source: its place, its size in bytes, and its item or the error because of which it is left out.

    `place` names the entry for people, as in "line 17" or "conversations.json, entry 3".
    """

    place: str
    size: int
    item: ImportItem | NewtonError


class RejectedEntry(NamedTuple):
    """The place of an entry that cannot be imported, and the reason."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A source of items to import.

    `format` names it for people, as in "an export of ChatGPT". `trust` is that of its facts and documents; a message
    has the trust of its role. `read` yields the entries from the beginning each time it is called. `passed_over`
    counts, by reason, what the last complete reading left out on purpose. With `is_counted`, the counts of its contents
    are shown before they are imported.
    """

    format: str
    read: Callable[[], Iterator[SourceEntry]]
    is_counted: bool = True
    trust: Trust = "user"
    passed_over: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """The counts of an import. `redacted` counts the secrets that were removed from the entries, by kind.

    `embedder_error` is the reason if the embedder failed, else None. `undecided` are the conversations in which a
    person asks to forget something that several statements may mean, so that none of them is forgotten.
    """

    new: int = 0
    unchanged: int = 0
    episodes: int = 0
    embedded: int = 0
    redacted: Redactions = field(default_factory=dict[str, int])
    rejections: list[RejectedEntry] = field(default_factory=list[RejectedEntry])
    embedder_error: str | None = None
    undecided: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class SourceSummary:
    """The counts of a source to import: its items by kind, the rejected entries, and the first and last time."""

    sessions: int = 0
    messages: int = 0
    facts: int = 0
    documents: int = 0
    decisions: int = 0
    others: int = 0
    rejections: list[RejectedEntry] = field(default_factory=list[RejectedEntry])
    first: datetime | None = None
    last: datetime | None = None

    @property
    def rejected(self) -> int:
        """Return the number of rejected entries."""
        return len(self.rejections)

    @property
    def total(self) -> int:
        """Return the number of entries, those that are rejected included."""
        return self.messages + self.facts + self.documents + self.decisions + self.others + self.rejected


def summarize_source(source: ImportSource) -> SourceSummary:
    """Read a source to its end and count its items. Raises InputError if it has none."""
    summary, sessions = SourceSummary(), set[str]()
    for place, _, item in source.read():
        match item:
            case NewtonError():
                summary.rejections.append(RejectedEntry(place, str(item)))
            case MessageItem():
                sessions.add(item.session)
                summary.messages += 1
                _widen(summary, item.message.said_at)
            case NewFact():
                summary.facts += 1
                _widen(summary, item.valid_from)
            case DocumentItem():
                summary.documents += 1
            case NewDecision():
                summary.decisions += 1
                _widen(summary, item.draft.at)
            case _:
                summary.others += 1
    summary.sessions = len(sessions)
    if not summary.total and not source.passed_over:
        raise InputError(
            f"The file looks like {source.format}, but has nothing to import.",
            hint="Export it again, or check that the export has conversations.",
        )
    return summary


def _widen(summary: SourceSummary, time: datetime | None) -> None:
    if time is not None:
        summary.first = min(summary.first or time, time)
        summary.last = max(summary.last or time, time)


MAX_LINE_BYTES = 8 * 1024 * 1024

KNOWN_TYPES = f"Known types: {', '.join(LINE_TYPES)}."


def read_lines(path: Path) -> Iterator[SourceEntry]:
    """Yield an entry for each non-blank line of an NDJSON file. That of an invalid line has the size 0 and an error."""
    occurrences: Counter[bytes] = Counter()
    for number, raw in _raw_lines(path):
        if isinstance(raw, NewtonError):
            yield SourceEntry(f"line {number}", 0, raw)
        elif raw.strip():
            key = digest(raw.strip().decode("utf-8", "replace"))
            try:
                yield SourceEntry(f"line {number}", len(raw), parse_line(raw, occurrence=occurrences[key]))
            except NewtonError as error:
                yield SourceEntry(f"line {number}", 0, error)
            occurrences[key] += 1


def read_file(path: Path) -> ImportSource:
    """Return an NDJSON file as a source of items to import."""
    return ImportSource(format="NDJSON lines", is_counted=False, read=lambda: read_lines(path))


def parse_line(raw: bytes, *, occurrence: int = 0) -> ImportItem:
    """Parse a line of an import file, and return the item to store. `occurrence` counts the identical lines before it.

    Raises InputError for an invalid line.
    """
    try:
        return convert_line(json.loads(raw.decode("utf-8").rstrip()), key=raw.strip().decode(), occurrence=occurrence)
    except UnicodeDecodeError as error:
        raise InputError(
            f"the line is not UTF-8 at byte {error.start + 1}.", hint="Convert the file to UTF-8."
        ) from None
    except json.JSONDecodeError as error:  # its text names a line too, which would be the first of this line alone
        what = f"the line is not JSON: {error.msg} at character {error.pos + 1}."
        raise InputError(what, hint="Write one JSON object on each line.") from None
    except (ValueError, RecursionError) as error:  # a number too long to parse, or too many levels
        raise InputError(f"the line is not JSON: {error}.", hint="Write one JSON object on each line.") from None


def convert_line(line: object, *, key: str, occurrence: int = 0) -> ImportItem:
    """Convert the JSON object of an import line to the item to store. Raises InputError if it is no valid line.

    A line without a ref is identified by `key` (its text) and `occurrence`, the number of identical lines before it, so
    that a repeated import stores nothing twice.
    """
    try:
        parsed = LINE_ADAPTER.validate_python(line)
        return parsed.to_item(parsed.ref or digest(key).hex(), occurrence)
    except ValidationError as error:
        raise _to_input_error(error) from None


def _to_input_error(error: ValidationError) -> InputError:
    first = error.errors(include_url=False)[0]
    if not first["loc"] and first["type"] == "model_attributes_type":
        return InputError("the line is JSON, but not an object.", hint="Write one JSON object on each line.")
    if first["type"] == "union_tag_invalid":
        tag = (first.get("ctx") or {}).get("tag")
        return InputError(f"lines of type {tag!r} cannot be imported.", hint=KNOWN_TYPES)
    if first["type"] == "union_tag_not_found":
        return InputError("the object has no 'type'.", hint=KNOWN_TYPES)
    field = ".".join(str(part) for part in first["loc"] if part not in LINE_TYPES)
    message = first["msg"][:1].lower() + first["msg"][1:]
    what = f"{field!r}: {message}" if field else message
    return InputError(f"{what}.", hint="`newton import --help` lists the fields.")


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes | NewtonError]]:
    """Yield the number and the bytes of each line; for a line over `MAX_LINE_BYTES`, an error in place of its bytes."""
    try:
        file = open_input(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Give the path of an NDJSON file.") from None
    number = 0
    with file:
        encoding = find_byte_order_mark(file.peek(4)[:4])
        lines = codecs.EncodedFile(file, "utf-8", encoding, errors="replace") if encoding else file
        while raw := lines.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) <= MAX_LINE_BYTES:
                yield number, raw
                continue
            while raw and not raw.endswith(b"\n"):
                raw = lines.readline(MAX_LINE_BYTES)
            yield (
                number,
                InputError("the line is longer than 8 MiB.", hint="Split the content of the line into several lines."),
            )
