"""Parsing of logs: whole lines, divided at the days that their time stamps name."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from newton.content.sections import DocumentSection, LineSpan, ParsedDocument

MAX_LINE_CHARS = 100_000  # of one line; the rest is left out, and an ellipsis says so
ELLIPSIS = " …"
_STAMP = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?")
_STAMP_CHARS = 200  # at the beginning of a line, in which its time stamp is


def parse_log(text: str) -> ParsedDocument:
    """Divide a log by days. The date of a section is the time stamp of its first line; times are read as UTC."""
    sections = tuple(_iter_days(text))
    return ParsedDocument("", sections, sections[-1].date if sections else None)


def _iter_days(text: str) -> Iterator[DocumentSection]:
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
    """Return the first ISO 8601 time near the beginning of a line, or None.

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
