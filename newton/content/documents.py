"""Reading of documents of all formats into sections of paragraphs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from os import stat_result
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from newton.content import sandbox
from newton.content.file_formats import (
    REMEDIES,
    SNIFFED_BYTES,
    UNREADABLE_SUFFIXES,
    DecodedText,
    DocumentFormat,
    decode_text,
    find_format,
    looks_like_text,
)
from newton.content.formats import code_outline, markdown, structured_data
from newton.content.sections import DocumentSection, ParsedDocument
from newton.errors import InputError
from newton.file_access import NOT_REGULAR, read_regular

TextFormat = Literal["markdown", "text"]  # can be parsed from a string; the other formats need a file

MAX_BYTES = 50 * 1024 * 1024  # of a file
HTML_SECONDS = 30  # of CPU time to read a page; a page of 50 MB takes a few

# The parsers of binary formats, each a module with a function `read`, which runs in a subprocess with limits.
_BINARY_PARSERS = {
    "pdf": "newton.content.formats.pdf",
    "docx": "newton.content.formats.word_document",
    "pptx": "newton.content.formats.presentation",
    "xlsx": "newton.content.formats.spreadsheet",
    "mail": "newton.content.formats.mail",
}
_SOURCE_FORMATS = frozenset(("code", "data", "table", "log", "notebook"))  # titled by their file names
_EMPTY_HINT = "Leave the document out, or add text to it."


class DocumentError(InputError):
    """Error of a document that cannot be read. `reason` says why, without the path."""

    def __init__(self, path: PurePath | str, reason: str, *, hint: str) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path, self.reason = str(path), reason


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDocument:
    """A parsed document with a non-empty title and at least one paragraph.

    `encoding` is that of a text, and None for other formats. `date` is when the document was written or last changed:
    as it states itself, else as its file does; None if neither is known.
    """

    title: str
    format: DocumentFormat
    sections: tuple[DocumentSection, ...]
    encoding: str | None = None
    date: datetime | None = None


class DocumentBytes(NamedTuple):
    """The content of a document with its name, its format, and the time of its last change if it is a file."""

    name: PurePath
    raw: bytes
    format: DocumentFormat
    modified_at: datetime | None = None


def load_bytes(path: Path) -> DocumentBytes:
    """Read the bytes of a document. Raises DocumentError if it cannot be read, is empty, or has no known format."""
    status = read_status(path)
    if S_ISDIR(status.st_mode):
        raise DocumentError(path, "it is a folder.", hint="Give the path of a document inside the folder.")
    if not S_ISREG(status.st_mode):
        raise DocumentError(path, f"{NOT_REGULAR}.", hint="Save the content to a regular file first.")
    if status.st_size > MAX_BYTES:
        what = f"it has {status.st_size / 2**20:,.1f} MB; the limit is {MAX_BYTES // 2**20} MB."
        raise DocumentError(path, what, hint="Split the document into parts.")
    try:
        raw = read_regular(path, max_bytes=MAX_BYTES)
    except OSError as error:
        raise unreadable_error(path, error) from None
    modified = datetime.fromtimestamp(status.st_mtime, UTC) if 0 <= status.st_mtime < 2**40 else None
    return identify(path, raw)._replace(modified_at=modified)


def identify(name: PurePath, raw: bytes) -> DocumentBytes:
    """Return a document with its format, found by its name or else by its bytes.

    Raises DocumentError for no known format.
    """
    if not raw.strip():
        raise DocumentError(name, "it is empty.", hint=_EMPTY_HINT)
    if reason := UNREADABLE_SUFFIXES.get(name.suffix.lower()):
        raise DocumentError(name, f"{reason}.", hint=REMEDIES[reason])
    form = find_format(name)
    if form is None:
        if not looks_like_text(raw[:SNIFFED_BYTES]):
            raise DocumentError(name, "it is a binary file.", hint="Leave it out, or save its text in another format.")
        form = "text"
    return DocumentBytes(name, raw, form)


def parse_document(document: DocumentBytes, *, encoding: str | None = None) -> LoadedDocument:
    """Parse a document. If it has no title, its file name becomes the title.

    `encoding` is that of its text; None detects it. Raises DocumentError if it cannot be parsed.
    """
    name, form = document.name, document.format
    decoded: DecodedText | None = None
    try:
        if form in _BINARY_PARSERS:
            parsed = sandbox.run_parser(_BINARY_PARSERS[form], document.raw)
        else:
            decoded = decode_text(document.raw, encoding)
            parsed = _parse_decoded(decoded.text, form, name)
    except InputError as error:
        raise DocumentError(name, error.what, hint=error.hint) from None
    if not parsed.sections:
        raise DocumentError(name, "it has no text.", hint=_EMPTY_HINT)
    return LoadedDocument(
        title=parsed.title or (name.name if form in _SOURCE_FORMATS else name.stem) or name.name,
        format=form,
        sections=parsed.sections,
        encoding=decoded.encoding if decoded else None,
        date=parsed.date or document.modified_at,
    )


def read_document(path: Path, *, encoding: str | None = None) -> LoadedDocument:
    """Read and parse a file. Raises DocumentError if it cannot be read or parsed, or has no known format.

    `encoding` is that of its text; None detects it.
    """
    return parse_document(load_bytes(path), encoding=encoding)


def parse_text(text: str, text_format: TextFormat) -> ParsedDocument:
    """Parse a document from a string in the format `text_format`. Raises InputError if it has no text."""
    parsed = markdown.parse_markdown(text) if text_format == "markdown" else markdown.parse_plain_text(text)
    if not parsed.sections:
        raise InputError("The document is empty.", hint=_EMPTY_HINT)
    return parsed


def read_status(path: Path) -> stat_result:
    """Return the status of a file. Raises DocumentError if the file does not exist, or access is denied."""
    try:
        return path.stat()
    except FileNotFoundError:
        raise DocumentError(path, "it does not exist.", hint="Give the path of a document or of a folder.") from None
    except OSError as error:
        raise unreadable_error(path, error) from None


def unreadable_error(path: Path, error: OSError) -> DocumentError:
    """Return the error for a file or folder that the system does not let Newton read."""
    hint = "Change the permissions of the path, or choose another one."
    return DocumentError(path, f"it cannot be read: {error.strerror}.", hint=hint)


def _parse_decoded(text: str, form: DocumentFormat, name: PurePath) -> ParsedDocument:
    if form == "html":
        return sandbox.run_parser("newton.content.formats.webpage", text.encode(), seconds=HTML_SECONDS)
    if form in ("code", "data"):
        suffix = name.suffix if "." in name.name[1:] else f".{name.name}"
        return structured_data.parse_data(text, suffix) if form == "data" else code_outline.parse_code(text, suffix)
    return _TEXT_PARSERS[form](text)


_TEXT_PARSERS: dict[DocumentFormat, Callable[[str], ParsedDocument]] = {
    "markdown": markdown.parse_markdown,
    "text": markdown.parse_plain_text,
    "table": structured_data.parse_table,
    "log": structured_data.parse_log,
    "notebook": structured_data.parse_notebook,
}
