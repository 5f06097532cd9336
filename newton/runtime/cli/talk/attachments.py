"""Files that an input names as `@path`: texts and PDFs become documents of the session, images go to the model."""

import asyncio
import base64
import mimetypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newton.errors import InputError
from newton.runtime.chat_backend.protocol import ChatBackend, ImagePart

_REFERENCE = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s@"]+))')
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_FILE_BYTES, MAX_FILES = 20_000_000, 8


@dataclass(frozen=True, slots=True)
class AttachedInput:
    """An input with its files: the text for the model, notes for the person, and the images."""

    text: str
    notes: Sequence[str] = ()
    images: Sequence[ImagePart] = ()


def find_files(text: str) -> list[Path]:
    """Return the files that a text names as `@path` or `@"path with spaces"`. Other words with @ are left alone."""
    existing = [path for path in _find_paths(text) if path.is_file()]
    if len(existing) > MAX_FILES:
        raise InputError(f"The input names {len(existing)} files.", hint=f"Name at most {MAX_FILES} files at once.")
    return existing


def find_missing_files(text: str) -> list[Path]:
    """Return what a text names as `@path` and is no file, if it has a slash: `@ana` may be a person.

    >>> [str(path) for path in find_missing_files("Ask @ana about @/no/such/file.txt, please")]
    ['/no/such/file.txt']
    """
    return [path for path in _find_paths(text) if len(path.parts) > 1 and not path.is_file()]


def _find_paths(text: str) -> list[Path]:
    found = [Path(match["quoted"] or match["plain"].rstrip(".,;:!?)")) for match in _REFERENCE.finditer(text)]
    return [path.expanduser() for path in dict.fromkeys(found)]


async def attach_files(backend: ChatBackend, session: str, text: str) -> AttachedInput:
    """Store the documents that an input names, and read its images. Raises InputError for a file that is too large."""
    notes = [f"@{path} is not a file; the model gets only these words." for path in find_missing_files(text)]
    images: list[ImagePart] = []
    lines: list[str] = []
    for path in find_files(text):
        raw = await asyncio.to_thread(_read, path)
        media_type = mimetypes.guess_type(path.name)[0] or ""
        if media_type in IMAGE_TYPES:
            url = f"data:{media_type};base64,{base64.b64encode(raw).decode()}"
            images.append(ImagePart(path.name, url))
            lines.append(f"[image: {path.name}]")
            continue
        name = await backend.attach_file(session, path.name, raw, ref=str(path.resolve()))
        lines.append(f"[file {path.name}: read it as the artifact {name}]")
        notes.append(f"{path.name} is a document now; `/documents` lists the documents.")
    return AttachedInput("\n".join([text, *lines]), notes, images)


def _read(path: Path) -> bytes:
    if path.stat().st_size > MAX_FILE_BYTES:
        what = f"{path} has more than {MAX_FILE_BYTES // 1_000_000} MB."
        raise InputError(what, hint="Use `newton ingest` for a large file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Name a file that you may read.") from None
