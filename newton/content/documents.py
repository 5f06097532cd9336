"""Reads documents from disk: Markdown, plain text, HTML and PDF become sections of paragraphs."""

from collections.abc import Callable
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from newton.content import confined, markup
from newton.content.sections import Reading, Section
from newton.errors import InputError

__all__ = ["Document", "Found", "Section", "Written", "documents_in", "read_document", "reading"]

Format = Literal["markdown", "text", "html", "pdf"]

# What may be read from a text that is at hand; the others are files.
Written = Literal["markdown", "text"]

LARGEST = 50 * 1024 * 1024  # bytes
FORMATS: dict[str, Format] = {
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
class Document:
    """A title that is never empty, and at least one paragraph."""

    title: str
    format: Format
    sections: tuple[Section, ...]


class Found(NamedTuple):
    """The documents of a path, and the links in it that lead out of it, which nobody asked to follow."""

    documents: list[Path]
    outside: list[Path]


def documents_in(path: Path, *, follow: bool = False) -> Found:
    """The file itself, or each file of the folder whose suffix is known, in the order of their paths.

    What is hidden is skipped. A link may lead to any place in the folder, and with `follow` to any place at all; each
    folder is looked through once, so none leads back. The path itself may be a link. Raises InputError when the path
    does not exist or a folder cannot be listed.
    """
    if not S_ISDIR(_found(path).st_mode):
        return Found([path], [])
    found = Found([], [])
    _look(path, found, within=None if follow else path.resolve(), seen=set())
    return found


def read_document(path: Path) -> Document:
    """The document, titled by itself or else by its file. HTML and PDF take a process, about 0.1 s.

    Raises InputError with the path and a remedy for whatever cannot be read.
    """
    form = _form(path)
    raw = _raw(path)
    try:
        reading = _READERS[form](raw)
    except InputError as error:
        raise InputError(f"{path} {error.what}", hint=error.hint) from None
    if not reading.sections:
        raise InputError(f"{path} says nothing.", hint="Leave it out, or write something in it.")
    return Document(title=reading.title or path.stem, format=form, sections=reading.sections)


def reading(text: str, form: Written) -> Reading:
    """A document that is at hand as a text. Raises InputError when it says nothing."""
    read = markup.markdown(text) if form == "markdown" else markup.plain(text)
    if not read.sections:
        raise InputError("The document says nothing.", hint="Leave it out, or write something in it.")
    return read


def _look(folder: Path, found: Found, *, within: Path | None, seen: set[Path]) -> None:
    if (place := folder.resolve()) in seen:
        return
    seen.add(place)
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable(folder, error) from None
    for child in children:
        if child.name.startswith("."):
            continue
        mode = _mode(child)
        document = child.suffix.lower() in FORMATS and S_ISREG(mode)
        if not document and not S_ISDIR(mode):
            continue
        if within and child.is_symlink() and not child.resolve().is_relative_to(within):
            found.outside.append(child)
        elif document:
            found.documents.append(child)
        else:
            _look(child, found, within=within, seen=seen)


def _mode(path: Path) -> int:
    """What it is, or what it leads to; 0 for a link that leads nowhere, or where we may not look."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _form(path: Path) -> Format:
    """Its format, by its suffix, if it is a file that may be read at all; not a byte of it has been read then."""
    found = _found(path)
    if S_ISDIR(found.st_mode):
        raise InputError(f"{path} is a folder.", hint="Name a document in it.")
    if not S_ISREG(found.st_mode):
        raise InputError(f"{path} is not a regular file.", hint="Save what it gives as a file first.")
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path} is in no format that is read.", hint=f"Known suffixes: {' '.join(FORMATS)}.")
    if found.st_size > LARGEST:
        what = f"{path} has {found.st_size / 2**20:,.1f} MB; {LARGEST // 2**20} MB is the most."
        raise InputError(what, hint="Split it into parts.")
    return form


def _found(path: Path) -> stat_result:
    try:
        return path.stat()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.", hint="Give the path of a document or of a folder.") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _raw(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    if not raw.strip():
        raise InputError(f"{path} is empty.", hint="Leave it out, or write something in it.")
    return raw


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be read: {error.strerror}.", hint="Mend its permissions or name another.")


def _text(raw: bytes) -> str:
    """As Unicode, each line ending in a line feed."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise InputError(f"is not UTF-8: {found}.", hint="Save it as UTF-8.") from None
    if (at := raw.find(b"\0")) >= 0:
        raise InputError(f"holds a NUL byte, at byte {at + 1}.", hint="Save it as UTF-8 text, if it is text.")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")


def _html(raw: bytes) -> Reading:
    return confined.read("newton.content.webpage", _text(raw).encode())


def _pdf(raw: bytes) -> Reading:
    return confined.read("newton.content.pdf", raw)


_READERS: dict[Format, Callable[[bytes], Reading]] = {
    "markdown": lambda raw: markup.markdown(_text(raw)),
    "text": lambda raw: markup.plain(_text(raw)),
    "html": _html,
    "pdf": _pdf,
}
