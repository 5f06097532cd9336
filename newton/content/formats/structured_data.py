"""Parsing of tables, data files (JSON, YAML, TOML, INI) by their keys, notebooks by cells, and logs by days."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from newton.content.formats.code_outline import parse_code
from newton.content.formats.markdown import parse_markdown
from newton.content.sections import DocumentSection, LineSpan, ParsedDocument, collapse_whitespace, join_heading
from newton.errors import InputError

MAX_LINE_CHARS = 100_000  # of one line; the rest is left out, and an ellipsis says so
ELLIPSIS = " …"
_STAMP = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?")
_STAMP_CHARS = 200  # at the beginning of a line, in which its time stamp is


def parse_log(text: str) -> ParsedDocument:
    """Divide a log by days, one section for each.

    Its date is the time stamp of its first line; times are read as UTC.
    """
    sections = tuple(_iter_days(text))
    return ParsedDocument("", sections, sections[-1].date if sections else None)


def _iter_days(text: str) -> Iterator[DocumentSection]:
    """Yield a section for each day of a log. A line without a time stamp belongs to the day of the line before it."""
    lines, spans, first_time = list[str](), list[LineSpan](), None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        time = find_time_stamp(line)
        if time and first_time and time.date() != first_time.date():
            yield _to_section(lines, spans, first_time)
            lines, spans, first_time = [], [], time
        first_time = first_time or time
        lines.append(line.rstrip() if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + ELLIPSIS)
        spans.append((number, number))
    if lines:
        yield _to_section(lines, spans, first_time)


def find_time_stamp(line: str) -> datetime | None:
    """Return the first ISO 8601 time near the beginning of a line; None without one.

    >>> find_time_stamp("[2026-03-01 09:15:00,123] ERROR no fuel")
    datetime.datetime(2026, 3, 1, 9, 15, tzinfo=datetime.timezone.utc)
    """
    match = _STAMP.search(line, 0, _STAMP_CHARS)
    if match is None:
        return None
    try:
        return datetime(*(int(part or 0) for part in match.groups()), tzinfo=UTC)
    except ValueError:
        return None


def _to_section(lines: list[str], spans: list[LineSpan], date: datetime | None) -> DocumentSection:
    return DocumentSection("", tuple(lines), tuple(spans), by_line=True, date=date)


SNIFFED_CHARS = 64 * 1024  # from which the delimiter is detected
DELIMITERS = ",;\t|"
MAX_CELL_CHARS = 1_000_000
CELL_SEPARATOR = " | "


def parse_table(text: str) -> ParsedDocument:
    """Parse a table of comma-separated values, or with another delimiter. The first row with text is the header."""
    csv.field_size_limit(MAX_CELL_CHARS)
    lines = (f"{line}\n" for line in text.split("\n"))
    reader = csv.reader(lines, delimiter=detect_delimiter(text[:SNIFFED_CHARS]))
    try:
        return ParsedDocument("", tuple(build_sections(_number_rows(reader))))
    except csv.Error as error:
        raise InputError(
            f"the table is broken in line {reader.line_num}: {error}.", hint="Correct the quotes of this line."
        ) from None


def detect_delimiter(sample: str) -> str:
    """Return the delimiter that divides the first lines into the most columns, the same number in each.

    >>> detect_delimiter("name;price\\nboat;1,5\\noar;2,5"), detect_delimiter("only one column")
    (';', ',')
    """
    lines = [line for line in sample.split("\n")[:50] if line.strip()]
    rows = {one: [len(row) for row in csv.reader(lines, delimiter=one)] for one in DELIMITERS}
    return max(DELIMITERS, key=lambda one: (_agreement(rows[one]), -DELIMITERS.index(one)))


def _agreement(counts: Sequence[int]) -> float:
    """Return how many rows have as many columns as the first one, times the number of columns; 0 for one column."""
    return 0 if not counts or counts[0] < 2 else sum(count == counts[0] for count in counts) * counts[0]


def _number_rows(reader: Any) -> Iterator[tuple[LineSpan, Sequence[str]]]:
    first = 1
    for row in reader:
        yield (first, reader.line_num), row
        first = reader.line_num + 1


def build_sections(
    rows: Iterable[tuple[LineSpan, Sequence[object]]], *, place: str = "", heading: str = ""
) -> Iterator[DocumentSection]:
    """Yield the section of a table, or nothing for an empty one. The first row with text is the header.

    Each of `rows` has its line numbers in the file, or its row number, and its cells. `place` and `heading` say where
    the table is, such as the name of its sheet.
    """
    lines = ((span, format_row(row)) for span, row in rows)
    filled = ((span, line) for span, line in lines if line)
    head = list(islice(filled, 1))
    body = list(filled)
    if not head:
        return
    spans, texts = zip(*(body or head), strict=True)
    header = head[0][1] if body else ""
    yield DocumentSection(
        heading, texts, tuple(spans), place=place, unit="row" if place else "line", by_line=True, repeated=header
    )


def format_row(row: Sequence[object]) -> str:
    """Return the cells of a row as one line; "" if all of them are empty."""
    cells = [collapse_whitespace(str(cell)) if cell is not None else "" for cell in row]
    return CELL_SEPARATOR.join(cells).rstrip(" |") if any(cells) else ""


LONG_LINE_CHARS = 500  # JSON with a longer line is printed anew, so that it can be divided by keys


def parse_data(text: str, suffix: str) -> ParsedDocument:
    """Divide structured data by its keys; `suffix` is that of the file name, such as ".json".

    JSON on one line is indented first; its positions are then the paths of keys.
    """
    is_compact = suffix == ".json" and any(len(line) > LONG_LINE_CHARS for line in text.split("\n"))
    if not is_compact:
        return parse_code(text, suffix)
    return parse_code(json.dumps(_load_json(text), ensure_ascii=False, indent=2), suffix, has_lines=False)


def parse_notebook(text: str) -> ParsedDocument:
    """Return the text and code cells of a Jupyter notebook, without their outputs."""
    notebook = _load_json(text)
    cells = cast("dict[str, Any]", notebook).get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise InputError("it is no notebook: it has no list of cells.", hint="Save it again in Jupyter.")
    sections, heading, title = list[DocumentSection](), "", ""
    for number, cell in enumerate(cast("list[Any]", cells), start=1):
        kind, source = _read_cell(cell)
        if not source.strip():
            continue
        if kind == "markdown":
            parsed = parse_markdown(source)
            title = title or parsed.title
            for section in parsed.sections:
                heading = section.heading or heading
                sections.append(section._replace(heading=heading, spans=(), place=f"cell {number}"))
        else:
            paragraphs = (source.strip("\n"),)
            sections.append(DocumentSection(join_heading((heading,)), paragraphs, place=f"cell {number}", by_line=True))
    return ParsedDocument(title, tuple(sections))


def _read_cell(cell: object) -> tuple[str, str]:
    """Return the type and the source of a cell; two empty texts for anything else."""
    if not isinstance(cell, dict):
        return "", ""
    fields = cast("dict[str, object]", cell)
    source = fields.get("source", "")
    lines = cast("list[object]", source) if isinstance(source, list) else [source]
    return str(fields.get("cell_type", "")), "".join(str(line) for line in lines)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError("its JSON is nested too deeply.", hint="Use fewer levels of lists and objects.") from None
    except ValueError as error:
        raise InputError(f"it is no valid JSON: {error}.", hint="Correct the file.") from None
