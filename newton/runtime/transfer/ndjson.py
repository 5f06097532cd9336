"""The parser of import files, which have one JSON object per line."""

import codecs
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from newton.content.charset import find_byte_order_mark
from newton.errors import InputError, NewtonError
from newton.memory.memory import digest
from newton.runtime.transfer.import_lines import LINE_ADAPTER, LINE_TYPES, ImportItem
from newton.runtime.transfer.import_source import ImportSource, SourceEntry

MAX_LINE_BYTES = 8 * 1024 * 1024

KNOWN_TYPES = f"Known types: {', '.join(LINE_TYPES)}."


def read_lines(path: Path) -> Iterator[SourceEntry]:
    """Yield an entry for each non-blank line. For an invalid line, the size is 0 and the item an error."""
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
    """Return the source of an NDJSON file."""
    return ImportSource(format="NDJSON lines", is_counted=False, read=lambda: read_lines(path))


def parse_line(raw: bytes, *, occurrence: int = 0) -> ImportItem:
    """Parse a line and return its item. `occurrence` is the number of identical lines before it.

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
    """Convert the object of a line to its item. Raises InputError for an object that is no valid line.

    A line without a ref is identified by `key`, its own text, so that a repeated import is idempotent.
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
        file = path.open("rb")
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
