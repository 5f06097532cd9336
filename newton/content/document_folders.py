"""Selection of the documents in a folder, and the reasons why other files are skipped."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from pathspec import GitIgnoreSpec

from newton.content.documents import MAX_BYTES, read_status, unreadable_error
from newton.content.file_formats import (
    GENERATED_FOLDERS,
    SNIFFED_BYTES,
    UNREADABLE_SUFFIXES,
    find_format,
    looks_like_text,
)
from newton.file_access import is_inside, open_regular, read_regular

MAX_EXAMPLES = 3  # of the files that are passed over for one reason

OUTSIDE_LINK = "link out of the folder"
IGNORED = "named in a .gitignore file"
SECRET = "file that has a secret of Newton"
MAX_IGNORE_BYTES = 1_000_000
IGNORE_FILE = ".gitignore"

PathTest = Callable[[Path], bool]


@dataclass(slots=True)
class SkippedFiles:
    """The files that are not documents: by reason, their number and a few examples in the order of their paths."""

    counts: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, reason: str, path: Path) -> None:
        """Count a file, and keep it as an example if there are few."""
        self.counts[reason] += 1
        named = self.examples.setdefault(reason, [])
        if len(named) < MAX_EXAMPLES:
            named.append(str(path))

    def __bool__(self) -> bool:
        return bool(self.counts)


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """The documents in a folder sorted by path, and the other files."""

    documents: list[Path] = field(default_factory=list[Path])
    skipped: SkippedFiles = field(default_factory=SkippedFiles)


def is_never_secret(path: Path) -> bool:
    """Return False for any file."""
    return False


def find_documents(path: Path, *, follow: bool = False, is_secret: PathTest = is_never_secret) -> FoundDocuments:
    """Return the text-like files in a folder and those inside it, or the path itself if it is a file.

    Hidden, generated, binary, empty and too large files are skipped, those that a `.gitignore` file in these folders
    names, and those of which `is_secret` returns true. Links inside the folder are followed; other links only with
    `follow`. Raises DocumentError if the path does not exist or cannot be listed.
    """
    found = FoundDocuments()
    if S_ISDIR(read_status(path).st_mode):
        _FolderSearch(found, within=None if follow else path.resolve(), is_secret=is_secret).collect(path)
    elif is_secret(path):
        found.skipped.add(SECRET, path)
    else:
        found.documents.append(path)
    return found


@dataclass(slots=True)
class _FolderSearch:
    """A search of a folder and those inside it.

    Links may lead only to what is in the folder `within`; None permits all.
    """

    found: FoundDocuments
    within: Path | None
    is_secret: PathTest
    visited: set[Path] = field(default_factory=set[Path])
    patterns: dict[Path, GitIgnoreSpec] = field(default_factory=dict[Path, GitIgnoreSpec])  # by folder

    def collect(self, folder: Path) -> None:
        """Add the documents in a folder and those inside it to `found`, sorted by path; count the files skipped."""
        waiting = [folder]
        documents = list[Path]()
        while waiting:
            current = waiting.pop()
            if (resolved := current.resolve()) not in self.visited:
                self.visited.add(resolved)
                self._read_patterns(current)
                waiting += self._sort_children(self._list_folder(current, folder), documents)
        self.found.documents.extend(sorted(documents, key=lambda path: path.parts))

    def _list_folder(self, current: Path, first: Path) -> list[Path]:
        """Return the children of a folder. Raises DocumentError if the first folder cannot be listed; skip others."""
        try:
            return sorted(current.iterdir())
        except OSError as error:
            if current == first:
                raise unreadable_error(current, error) from None
            self.found.skipped.add("folder that cannot be read", current)
            return []

    def _sort_children(self, children: Sequence[Path], documents: list[Path]) -> Iterator[Path]:
        """Add the documents of a folder to `documents`, and yield its folders."""
        for child in children:
            mode = _read_mode(child)
            if reason := self._find_reason(child, mode):
                self.found.skipped.add(reason, child)
            elif S_ISDIR(mode):
                yield child
            else:
                documents.append(child)

    def _read_patterns(self, folder: Path) -> None:
        try:
            raw = read_regular(folder / IGNORE_FILE, max_bytes=MAX_IGNORE_BYTES, within=self.within)
        except OSError:  # there is none, or it cannot be read
            return
        self.patterns[folder] = GitIgnoreSpec.from_lines(raw.decode(errors="replace").splitlines())

    def _is_ignored(self, path: Path, mode: int) -> bool:
        """Return whether a `.gitignore` file names the path. That of an inner folder outweighs those further out."""
        for folder in path.parents:
            if spec := self.patterns.get(folder):
                name = path.relative_to(folder).as_posix() + ("/" if S_ISDIR(mode) else "")
                decided = spec.check_file(name).include
                if decided is not None:
                    return decided
        return False

    def _find_reason(self, path: Path, mode: int) -> str | None:
        """Return why a file or a folder is passed over, or None."""
        if path.name.startswith("."):
            return "hidden"
        if self.patterns and self._is_ignored(path, mode):
            return IGNORED
        if path.is_symlink() and self.within and mode and not is_inside(path, self.within):
            return OUTSIDE_LINK
        if S_ISDIR(mode):
            return "folder of generated files" if path.name in GENERATED_FOLDERS else None
        return _find_file_reason(path, mode) or (SECRET if self.is_secret(path) else None)


def _find_file_reason(path: Path, mode: int) -> str | None:
    """Return why a file, by its mode, name, size or first bytes, is not a document; None if it is one."""
    if not S_ISREG(mode):
        return "not a regular file" if mode else "broken link, or no permission"
    size = path.stat().st_size
    if not size:
        return "empty"
    if path.name.endswith(("~", ".lock")) or path.name.startswith("~$"):
        return "backup or lock file"
    if reason := UNREADABLE_SUFFIXES.get(path.suffix.lower()):
        return reason
    form = find_format(path)
    if form is None and not looks_like_text(_read_head(path)):
        return "binary"
    return f"larger than {MAX_BYTES // 2**20} MB" if size > MAX_BYTES else None


def _read_head(path: Path) -> bytes:
    """Return the first bytes of a file; a NUL byte, as of a binary file, if access is denied."""
    try:
        with open_regular(path) as file:
            return file.read(SNIFFED_BYTES)
    except OSError:
        return b"\0"


def _read_mode(path: Path) -> int:
    """Return the file mode of the path or of its link target; 0 if it does not exist or access is denied."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0
