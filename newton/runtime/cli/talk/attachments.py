"""Files that an input names as `@path`: texts and PDFs become documents of the session, images go to the model."""

import asyncio
import base64
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newton.content.documents import DocumentError
from newton.errors import InputError
from newton.runtime.chat_backend.protocol import ChatBackend, ImagePart

_REFERENCE = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s@"]+))')
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_FILE_BYTES, MAX_FILES = 20_000_000, 8
NOT_SENT = "The message was not sent."


@dataclass(frozen=True, slots=True)
class AttachedInput:
    """An input with its files: the text for the model, notes for the person at the terminal, and the images."""

    text: str
    notes: Sequence[str] = ()
    images: Sequence[ImagePart] = ()


def find_files(text: str) -> list[Path]:
    """Return the existing files that a text names as `@path` or `@"path with spaces"`.

    Raises InputError for more than `MAX_FILES`.
    """
    existing = [path for path in _find_paths(text) if path.is_file()]
    if len(existing) > MAX_FILES:
        raise InputError(f"The input names {len(existing)} files.", hint=f"Name at most {MAX_FILES} files at once.")
    return existing


def find_missing_files(text: str) -> list[Path]:
    """Return the paths that a text names as `@path` but that are no files, so that the person can be told.

    Only a path with a slash, a known file extension or an existing folder counts, because `@ana` may be a person.

    >>> [str(path) for path in find_missing_files("Ask @ana about @/no/such/file and @no-such-file.txt, please")]
    ['/no/such/file', 'no-such-file.txt']
    """
    return [
        path
        for path in _find_paths(text)
        if not path.is_file() and (len(path.parts) > 1 or path.is_dir() or mimetypes.guess_type(path.name)[0])
    ]


def _explain_missing(path: Path) -> str:
    if path.is_dir():
        return f"@{path} is a folder and was not read: name its files, or read it with `newton ingest`."
    return f"There is no file {path}: the model gets only these words."


def _find_paths(text: str) -> list[Path]:
    found = [Path(match["quoted"] or match["plain"].rstrip(".,;:!?)")) for match in _REFERENCE.finditer(text)]
    return [path.expanduser() for path in dict.fromkeys(found)]


async def attach_files(backend: ChatBackend, session: str, text: str) -> AttachedInput:
    """Store the documents that an input names as `@path`, and read the images; return the input to send.

    Raises InputError for a file that is too large, cannot be read or has no text.
    """
    notes = [_explain_missing(path) for path in find_missing_files(text)]
    images: list[ImagePart] = []
    lines: list[str] = []
    files = [(path, await asyncio.to_thread(_read, path)) for path in find_files(text)]
    for path, raw in files:
        media_type = mimetypes.guess_type(path.name)[0] or ""
        if media_type in IMAGE_TYPES:
            url = f"data:{media_type};base64,{base64.b64encode(raw).decode()}"
            images.append(ImagePart(path.name, url))
            lines.append(f"[image: {path.name}]")
            continue
        try:
            await backend.attach_file(session, path.name, raw, ref=str(path.resolve()))
        except DocumentError as error:
            raise InputError(f"{path}: {error.what}", hint=f"{NOT_SENT} {error.hint}") from None
        lines.append(f"[file {path.name}: read it as the artifact {path.name}]")
        notes.append(f"{path.name} is a document now; `/documents` lists the documents.")
    return AttachedInput("\n".join([text, *lines]), notes, images)


def _read(path: Path) -> bytes:
    if path.stat().st_size > MAX_FILE_BYTES:
        what = f"{path} has more than {MAX_FILE_BYTES // 1_000_000} MB."
        raise InputError(what, hint=f"{NOT_SENT} Use `newton ingest` for a large file.")
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}."
        raise InputError(what, hint=f"{NOT_SENT} Name a file that you may read.") from None
