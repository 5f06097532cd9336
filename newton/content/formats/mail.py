"""Parsing of e-mail: single messages (.eml) and mailboxes (.mbox)."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime

from newton.content.formats import webpage
from newton.content.formats.markdown import parse_plain_text
from newton.content.sections import DocumentSection, ParsedDocument, collapse_whitespace
from newton.errors import InputError

MAX_HEADER_CHARS = 200  # of an address list that each passage repeats
_SEPARATOR = re.compile(rb"^From [^\n]*\d{4}[^\n]*\n", re.MULTILINE)
_PARSER = BytesParser(policy=policy.default)


def read(raw: bytes) -> ParsedDocument:
    """Parse a message, or all messages of a mailbox, each as sections that begin with sender, recipients and date.

    Attachments are named, but not read. Call it only in a subprocess with limits. Raises InputError for a text without
    the headers of an e-mail.
    """
    messages = list(_split_mailbox(raw))
    sections, dates, subjects = list[DocumentSection](), list[datetime](), list[str]()
    for number, message in enumerate(messages, start=1):
        place = f"message {number}" if len(messages) > 1 else ""
        date = _read_date(message)
        dates += [date] if date else []
        subjects.append(_header(message, "subject"))
        sections += _read_message(message, place, date)
    if not any(message.keys() for message in messages):
        raise InputError("it has no headers of an e-mail.", hint="Export the message again, or rename the file.")
    return ParsedDocument(subjects[0] if len(subjects) == 1 else "", tuple(sections), max(dates, default=None))


def _split_mailbox(raw: bytes) -> Iterator[EmailMessage]:
    if not raw.startswith(b"From "):
        yield _parse(raw)
        return
    starts = [match.start() for match in _SEPARATOR.finditer(raw) if _begins_message(raw, match.start())]
    for start, end in zip(starts, [*starts[1:], len(raw)], strict=True):
        yield _parse(raw[raw.index(b"\n", start) + 1 : end].replace(b"\n>From ", b"\nFrom "))


def _begins_message(raw: bytes, start: int) -> bool:
    """Return whether a line that begins with "From " is the beginning of a message: only below an empty line."""
    return start == 0 or raw[max(start - 2, 0) : start] == b"\n\n" or raw[max(start - 3, 0) : start] == b"\n\r\n"


def _parse(raw: bytes) -> EmailMessage:
    message = _PARSER.parsebytes(raw)
    assert isinstance(message, EmailMessage)
    return message


def _read_message(message: EmailMessage, place: str, date: datetime | None) -> Iterator[DocumentSection]:
    subject = _header(message, "subject")
    names = ("From", "To", "Cc")
    headers = [f"{name}: {value[:MAX_HEADER_CHARS]}" for name in names if (value := _header(message, name))]
    if date:
        headers.append(f"Date: {date:%Y-%m-%d %H:%M} UTC")
    if attachments := _list_attachments(message):
        headers.append(f"Attachments: {', '.join(attachments)[:MAX_HEADER_CHARS]}")
    repeated = "; ".join(headers)
    sections = _read_body(message) or (DocumentSection("", (subject or "(no text)",)),)
    for section in sections:
        heading = " > ".join(filter(None, (subject, section.heading)))
        yield section._replace(heading=heading, spans=(), place=place, repeated=repeated, date=date)


def _read_body(message: EmailMessage) -> tuple[DocumentSection, ...]:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return ()
    content = body.get_content()
    if not isinstance(content, str):
        return ()
    text = content.replace("\r\n", "\n").replace("\0", "")
    is_html = body.get_content_subtype() == "html"
    return (webpage.read(text.encode("utf-8", "replace")) if is_html else parse_plain_text(text)).sections


def _list_attachments(message: EmailMessage) -> list[str]:
    return [collapse_whitespace(part.get_filename() or part.get_content_type()) for part in message.iter_attachments()]


def _header(message: EmailMessage, name: str) -> str:
    value = str(message.get(name, "")).replace("\0", "")
    return collapse_whitespace(value).encode("utf-8", "replace").decode()


def _read_date(message: EmailMessage) -> datetime | None:
    try:
        date = parsedate_to_datetime(_header(message, "date"))
    except (ValueError, TypeError):
        return None
    try:
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
