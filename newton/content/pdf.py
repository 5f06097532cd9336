"""Reads the text of a PDF, a section for each page."""

import io
import re
from collections.abc import Iterator

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError

from newton.content.sections import MAX_HEADING_CHARS, DocumentSection, ParsedDocument, collapse_whitespace
from newton.errors import InputError

MAX_CHARS = 50_000_000  # characters; a small file can hold as many pages of one text as it likes
_BLANK_LINES = re.compile(r"\n[ \t]*\n")


def read(raw: bytes) -> ParsedDocument:
    """Raises InputError when it is encrypted, or has no text or too much.

    To be called in a process with limits, where an exception harms nobody: pypdf raises all kinds when a file is
    broken, and there are files on which it never ends.

    A page without a blank line is one paragraph, for PDF knows where letters stand and not what they form. A word
    hyphenated at a line end stays in two.
    """
    try:
        reader = PdfReader(io.BytesIO(raw))
        pages = list(_iter_page_texts(reader))
    except (FileNotDecryptedError, DependencyError):
        raise InputError("is encrypted.", hint="Save a copy without a password, or print it to a new PDF.") from None
    sections = [
        DocumentSection(f"page {number}", paragraphs)
        for number, page in enumerate(pages, start=1)
        if (paragraphs := tuple(collapse_whitespace(part) for part in _BLANK_LINES.split(page) if part.strip()))
    ]
    if not sections:
        raise InputError(f"has no text on any page (of {len(pages)}).", hint="Is it scanned? Run OCR over it first.")
    title = reader.metadata.title if reader.metadata else None
    return ParsedDocument(
        collapse_whitespace(_clean_text(title))[:MAX_HEADING_CHARS] if isinstance(title, str) else "", tuple(sections)
    )


def _iter_page_texts(reader: PdfReader) -> Iterator[str]:
    characters = 0
    for page in reader.pages:
        text = _clean_text(page.extract_text())
        characters += len(text)
        if characters > MAX_CHARS:
            raise InputError(f"holds more than {MAX_CHARS:,} characters of text.", hint="Split it.")
        yield text


def _clean_text(text: str) -> str:
    """A PDF cannot be mended by who reads it: halves of characters are joined or replaced, NUL bytes dropped."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
