"""Read documents from disk: Markdown, plain text, HTML and PDF become sections of paragraphs."""

from collections.abc import Callable
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from newton.content import markdown, sandbox
from newton.content.sections import DocumentSection, ParsedDocument
from newton.errors import InputError

__all__ = ["DocumentSection", "Found", "LoadedDocument", "TextFormat", "iter_documents", "parse_text", "read_document"]

DocumentFormat = Literal["markdown", "text", "html", "pdf"]

# Formats that can be parsed from a string; the others need a file.
TextFormat = Literal["markdown", "text"]

MAX_BYTES = 50 * 1024 * 1024  # bytes
FORMAT_BY_SUFFIX: dict[str, DocumentFormat] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
    ".rst": "text",
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDocument:
    """A parsed document with a non-empty title and at least one paragraph."""

    title: str
    format: DocumentFormat
    sections: tuple[DocumentSection, ...]


class Found(NamedTuple):
    """The documents under a path, and the links that lead out of it and were not followed."""

    documents: list[Path]
    outside: list[Path]


def iter_documents(path: Path, *, follow: bool = False) -> Found:
    """Return the file itself, or each file of the folder with a known suffix, sorted by path.

    Hidden files are skipped. Links inside the folder are followed; with `follow` so are links that lead out of it. Each
    folder is visited once, so link cycles end. Raises InputError when the path does not exist or a folder cannot be
    listed.
    """
    if not S_ISDIR(_stat(path).st_mode):
        return Found([path], [])
    found = Found([], [])
    _look(path, found, within=None if follow else path.resolve(), seen=set())
    return found


def read_document(path: Path) -> LoadedDocument:
    """Read a document; its title defaults to the file name. HTML and PDF run in a subprocess, about 0.1 s.

    Raises InputError with the path and a remedy for a file that cannot be read.
    """
    form = _check_format(path)
    raw = _read_bytes(path)
    try:
        reading = _PARSERS[form](raw)
    except InputError as error:
        raise InputError(f"{path} {error.what}", hint=error.hint) from None
    if not reading.sections:
        raise InputError(f"{path} has no text.", hint="Leave it out, or add text to it.")
    return LoadedDocument(title=reading.title or path.stem, format=form, sections=reading.sections)


def parse_text(text: str, text_format: TextFormat) -> ParsedDocument:
    """Parse a document given as text. Raises InputError when it is empty."""
    read = markdown.parse_markdown(text) if text_format == "markdown" else markdown.parse_plain_text(text)
    if not read.sections:
        raise InputError("The document is empty.", hint="Leave it out, or add text to it.")
    return read


def _look(folder: Path, found: Found, *, within: Path | None, seen: set[Path]) -> None:
    if (place := folder.resolve()) in seen:
        return
    seen.add(place)
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable_error(folder, error) from None
    for child in children:
        if child.name.startswith("."):
            continue
        mode = _mode(child)
        document = child.suffix.lower() in FORMAT_BY_SUFFIX and S_ISREG(mode)
        if not document and not S_ISDIR(mode):
            continue
        if within and child.is_symlink() and not child.resolve().is_relative_to(within):
            found.outside.append(child)
        elif document:
            found.documents.append(child)
        else:
            _look(child, found, within=within, seen=seen)


def _mode(path: Path) -> int:
    """Return the file mode of the path or of its link target; 0 for a broken link or one that may not be read."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _check_format(path: Path) -> DocumentFormat:
    """Return the format by suffix, after checking that the path is a regular file of a permitted size."""
    found = _stat(path)
    if S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder.", hint="Name a document inside it.")
    if not S_ISREG(found.st_mode):
        raise InputError(f"{path} is not a regular file.", hint="Save its content to a regular file first.")
    form = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path} has an unsupported format.", hint=f"Known suffixes: {' '.join(FORMAT_BY_SUFFIX)}.")
    if found.st_size > MAX_BYTES:
        what = f"{path} has {found.st_size / 2**20:,.1f} MB; {MAX_BYTES // 2**20} MB is the limit."
        raise InputError(what, hint="Split it into parts.")
    return form


def _stat(path: Path) -> stat_result:
    try:
        return path.stat()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.", hint="Give the path of a document or of a folder.") from None
    except OSError as error:
        raise _unreadable_error(path, error) from None


def _read_bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable_error(path, error) from None
    if not raw.strip():
        raise InputError(f"{path} is empty.", hint="Leave it out, or add text to it.")
    return raw


def _unreadable_error(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be read: {error.strerror}.", hint="Fix its permissions or name another.")


def _decode(raw: bytes) -> str:
    """Decode UTF-8 and normalize line ends to line feeds."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise InputError(f"is not UTF-8: {found}.", hint="Save it as UTF-8.") from None
    if (at := raw.find(b"\0")) >= 0:
        raise InputError(f"holds a NUL byte, at byte {at + 1}.", hint="Save it as UTF-8 text, if it is text.")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")


def _parse_html(raw: bytes) -> ParsedDocument:
    return sandbox.run_parser("newton.content.webpage", _decode(raw).encode())


def _parse_pdf(raw: bytes) -> ParsedDocument:
    return sandbox.run_parser("newton.content.pdf", raw)


_PARSERS: dict[DocumentFormat, Callable[[bytes], ParsedDocument]] = {
    "markdown": lambda raw: markdown.parse_markdown(_decode(raw)),
    "text": lambda raw: markdown.parse_plain_text(_decode(raw)),
    "html": _parse_html,
    "pdf": _parse_pdf,
}
