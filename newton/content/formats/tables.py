"""Parsing of tables (CSV, TSV and sheets) into sections whose passages each begin with the header."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from newton.content.sections import DocumentSection, LineSpan, ParsedDocument, collapse_whitespace
from newton.errors import InputError

SNIFFED_CHARS = 64 * 1024  # from which the delimiter is detected
DELIMITERS = ",;\t|"
MAX_CELL_CHARS = 1_000_000
CELL_SEPARATOR = " | "


def parse_table(text: str) -> ParsedDocument:
    """Parse comma-separated values or the like. The first row with text is the header."""
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
    """Yield the section of a table. Each of `rows` is a row with its lines in the file, or its number."""
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
