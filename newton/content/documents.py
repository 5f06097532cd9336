"""Reading of Markdown, plain text, HTML and PDF documents into sections of paragraphs."""

from collections.abc import Callable
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal, NamedTuple

from newton.content import markdown, sandbox
from newton.content.sections import DocumentSection, ParsedDocument
from newton.errors import InputError

DocumentFormat = Literal["markdown", "text", "html", "pdf"]

TextFormat = Literal["markdown", "text"]  # can be parsed from a string; the other formats need a file

MAX_BYTES = 50 * 1024 * 1024  # of a file
SUFFIXES: dict[DocumentFormat, tuple[str, ...]] = {
    "markdown": (".md", ".markdown"),
    "text": (".txt", ".text", ".rst"),
    "html": (".html", ".htm"),
    "pdf": (".pdf",),
}
FORMAT_BY_SUFFIX: dict[str, DocumentFormat] = {one: form for form, suffixes in SUFFIXES.items() for one in suffixes}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedDocument:
    """A parsed document with a non-empty title and at least one paragraph."""

    title: str
    format: DocumentFormat
    sections: tuple[DocumentSection, ...]


class DocumentPaths(NamedTuple):
    """The documents in a folder, and the symbolic links that were skipped because they point outside it."""

    documents: list[Path]
    outside: list[Path]


def list_documents(path: Path, *, follow: bool = False) -> DocumentPaths:
    """Return the documents in a folder (files with a known suffix) sorted by path, or the path itself if it is a file.

    Hidden files are skipped. Links inside the folder are followed; other links only with `follow`. Raises InputError if
    the path does not exist or a folder cannot be listed.
    """
    if not S_ISDIR(_stat(path).st_mode):
        return DocumentPaths([path], [])
    paths = DocumentPaths([], [])
    _collect_paths(path, paths, within=None if follow else path.resolve(), visited=set())
    return paths


def read_document(path: Path) -> LoadedDocument:
    """Read and parse a document. If the document has no title, its file name becomes the title.

    Raises InputError, which names the path, if the document cannot be read.
    """
    form = _check_format(path)
    raw = _read_bytes(path)
    try:
        parsed = _PARSERS[form](raw)
    except InputError as error:
        raise InputError(f"{path}: {error.what}", hint=error.hint) from None
    if not parsed.sections:
        raise InputError(f"{path} has no text.", hint=_EMPTY_HINT)
    return LoadedDocument(title=parsed.title or path.stem, format=form, sections=parsed.sections)


def parse_text(text: str, text_format: TextFormat) -> ParsedDocument:
    """Parse a document from a string. Raises InputError if it has no text."""
    parsed = markdown.parse_markdown(text) if text_format == "markdown" else markdown.parse_plain_text(text)
    if not parsed.sections:
        raise InputError("The document is empty.", hint=_EMPTY_HINT)
    return parsed


def _collect_paths(folder: Path, paths: DocumentPaths, *, within: Path | None, visited: set[Path]) -> None:
    if (resolved := folder.resolve()) in visited:
        return
    visited.add(resolved)
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise _unreadable_error(folder, error) from None
    for child in children:
        if child.name.startswith("."):
            continue
        mode = _mode(child)
        is_document = child.suffix.lower() in FORMAT_BY_SUFFIX and S_ISREG(mode)
        if not is_document and not S_ISDIR(mode):
            continue
        if within and child.is_symlink() and not child.resolve().is_relative_to(within):
            paths.outside.append(child)
        elif is_document:
            paths.documents.append(child)
        else:
            _collect_paths(child, paths, within=within, visited=visited)


def _mode(path: Path) -> int:
    """Return the file mode of the path or of its link target; 0 if it does not exist or access is denied."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _check_format(path: Path) -> DocumentFormat:
    """Return the document format by the file's suffix.

    Raises InputError unless the path is a regular file with a known suffix and at most MAX_BYTES.
    """
    status = _stat(path)
    if S_ISDIR(status.st_mode):
        raise InputError(f"{path} is a folder.", hint="Give the path of a document inside the folder.")
    if not S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file.", hint="Save the content to a regular file first.")
    form = FORMAT_BY_SUFFIX.get(path.suffix.lower())
    if form is None:
        raise InputError(f"{path} has an unsupported format.", hint=f"Known suffixes: {' '.join(FORMAT_BY_SUFFIX)}.")
    if status.st_size > MAX_BYTES:
        what = f"{path} has {status.st_size / 2**20:,.1f} MB; the limit is {MAX_BYTES // 2**20} MB."
        raise InputError(what, hint="Split the document into parts.")
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
        raise InputError(f"{path} is empty.", hint=_EMPTY_HINT)
    return raw


def _unreadable_error(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} cannot be read: {error.strerror}.", hint="Change the permissions of the path, or choose another one."
    )


def _decode(raw: bytes) -> str:
    """Decode UTF-8, and convert all line ends to line feeds. Raises InputError for bytes that are not text."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        invalid = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
        raise InputError(f"the document is not UTF-8: {invalid}.", hint="Save the file as UTF-8.") from None
    if (position := raw.find(b"\0")) >= 0:
        raise InputError(
            f"the document has a NUL byte, at byte {position + 1}.", hint="If the file is text, save it as UTF-8."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")


_EMPTY_HINT = "Leave the document out, or add text to it."
_PARSERS: dict[DocumentFormat, Callable[[bytes], ParsedDocument]] = {
    "markdown": lambda raw: markdown.parse_markdown(_decode(raw)),
    "text": lambda raw: markdown.parse_plain_text(_decode(raw)),
    "html": lambda raw: sandbox.run_parser("newton.content.webpage", _decode(raw).encode()),
    "pdf": lambda raw: sandbox.run_parser("newton.content.pdf", raw),
}
