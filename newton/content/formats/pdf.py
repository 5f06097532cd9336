"""Extraction of the text of a PDF, one section for each page."""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

from newton.content.sections import MAX_HEADING_CHARS, DocumentSection, ParsedDocument, collapse_whitespace
from newton.errors import InputError

MAX_CHARS = 50_000_000  # of all pages; a small file can repeat one text on any number of pages
_BLANK_LINES = re.compile(r"\n[ \t]*\n")


def read(raw: bytes) -> ParsedDocument:
    """Parse a PDF into one section for each page. Blank lines separate paragraphs.

    Call it only in a subprocess with limits: on a malformed file pypdf may raise any exception or never return. Raises
    InputError if the file is encrypted, has no text, or has more than MAX_CHARS characters.
    """
    try:
        reader = PdfReader(io.BytesIO(raw))
        pages = list(_iter_page_texts(reader))
    except (FileNotDecryptedError, DependencyError):
        raise InputError("the document is encrypted.", hint="Save a copy without a password.") from None
    sections = [
        DocumentSection("", paragraphs, place=f"page {number}")
        for number, page in enumerate(pages, start=1)
        if (paragraphs := tuple(collapse_whitespace(part) for part in _BLANK_LINES.split(page) if part.strip()))
    ]
    if not sections:
        raise InputError(
            f"the document has no text on any of its {len(pages)} pages.",
            hint="If the document is a scan, run OCR on it first.",
        )
    metadata = reader.metadata.title if reader.metadata else None
    title = collapse_whitespace(_clean_text(metadata)) if isinstance(metadata, str) else ""
    return ParsedDocument(title[:MAX_HEADING_CHARS], tuple(sections), _read_date(reader))


def _read_date(reader: PdfReader) -> datetime | None:
    """Return the time of the last change, or else of the creation; None if the document states none."""
    if reader.metadata is None:
        return None
    try:
        date = reader.metadata.modification_date or reader.metadata.creation_date
    except (ValueError, TypeError):
        return None
    return date.replace(tzinfo=UTC) if date and not date.tzinfo else date


def _iter_page_texts(reader: PdfReader) -> Iterator[str]:
    characters = 0
    for page in reader.pages:
        text = _clean_text(page.extract_text())
        characters += len(text)
        if characters > MAX_CHARS:
            raise InputError(
                f"the document contains more than {MAX_CHARS:,} characters of text.", hint="Split the document."
            )
        yield text


def _clean_text(text: str) -> str:
    """Return the text without NUL bytes, with surrogate pairs joined and other surrogates replaced."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
