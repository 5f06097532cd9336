"""Access to the JSON files of an export: one file, a folder, or a ZIP archive. What cannot be read is named."""

import errno
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pydantic import JsonValue

from newton.content.file_formats import find_encoding
from newton.errors import InputError
from newton.file_access import open_regular, read_regular
from newton.runtime.transfer.exports.export_lines import JsonObject, is_object

MAX_FILE_BYTES = 1024**3  # of one file, and of all that are read from an archive, unpacked
MAX_RATIO = 50  # of the unpacked to the packed size; text reaches about 20
_GAP = re.compile(r"[\s,]*")  # between the values of a JSON list
# RuntimeError: the archive has a password. The others are of damaged data.
_ARCHIVE_ERRORS = (
    OSError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_AGAIN = "Ask for the export again, or unpack it and give the path of its folder."


class JsonFile(NamedTuple):
    """A JSON file of an export: its name within the export, and its value. `error` is why a part or all is missing."""

    name: str
    value: JsonValue
    error: InputError | None = None


ExportEntry = tuple[str, JsonObject | InputError]  # the place of an entry, and its object or why it cannot be read


def is_zip_archive(path: Path) -> bool:
    """Return whether a path is a regular file in ZIP format."""
    try:
        with open_regular(path) as file:
            return zipfile.is_zipfile(file)
    except OSError:
        return False


def list_names(path: Path) -> Sequence[str]:
    """Return the names of the files in a ZIP archive, or in a folder and its direct subfolders, or that of a file.

    Hidden files are left out. Raises InputError for an archive whose list of files cannot be read.
    """
    if path.is_dir():
        names = [child.relative_to(path).as_posix() for pattern in ("*", "*/*") for child in path.glob(pattern)]
        return sorted(name for name in names if not _is_hidden(name) and (path / name).is_file())
    if not is_zip_archive(path):
        return [path.name]
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(one.filename for one in archive.infolist() if not (one.is_dir() or _is_hidden(one.filename)))
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{path} cannot be unpacked: {error}.", hint=_AGAIN) from None


def select_names(path: Path, *patterns: str) -> list[str]:
    """Return the names of the files of an export that match one of `patterns`, such as `projects/*.json`.

    The files of an archive may lie in a further folder; those of a folder lie where the pattern says.
    """
    found = [PurePosixPath(name) for name in list_names(path)]
    return [
        str(name)
        for name in found
        if any(name.match(one) and not (path.is_dir() and len(name.parts) > one.count("/") + 1) for one in patterns)
    ]


def read_json_files(path: Path, *patterns: str) -> Iterator[JsonFile]:
    """Yield the JSON files of an archive or a folder that `select_names` selects, sorted by name.

    `path` may also be a single file, which is read whatever its name. A file that cannot be read has an error in place
    of its value. Raises InputError for an archive that cannot be opened or is too large.
    """
    if path.is_dir():
        for name in select_names(path, *patterns):
            yield _load(name, partial(_read_file, path / name, within=path))
    elif is_zip_archive(path):
        yield from _read_archive(path, select_names(path, *patterns))
    else:
        yield _load(path.name, partial(_read_file, path))


def read_entries(path: Path, *patterns: str, keys: Sequence[str] = ()) -> Iterator[ExportEntry]:
    """Yield the entries (JSON objects) of the lists in the JSON files of an export, each with its place.

    A list may also be the value of one of `keys` in an object. Yield an error for an entry that is no object, and for
    a file, or the end of a file, that cannot be read.
    """
    for file in read_json_files(path, *patterns):
        values = list_values(file.value, *keys)
        for number, value in enumerate(values, start=1):
            place = f"{file.name}, entry {number}" if isinstance(file.value, list) or len(values) > 1 else file.name
            yield place, value if is_object(value) else InputError("it is not a JSON object.", hint="Leave it out.")
        if file.error:
            yield file.name, file.error


def list_values(value: JsonValue, *keys: str) -> Sequence[JsonValue]:
    """Return a JSON list, or the list under one of `keys` in an object; another object as the only value."""
    if is_object(value):
        for key in keys:
            if isinstance(found := value.get(key), list):
                return found
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts)


def _read_archive(path: Path, names: Sequence[str]) -> Iterator[JsonFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [archive.getinfo(name) for name in names]
            if sum(one.file_size for one in members) > MAX_FILE_BYTES:
                raise InputError(f"{path} unpacks to more than 1 GiB.", hint="Import its parts one after the other.")
            for one in members:
                yield _load(one.filename, partial(_unpack, archive, one))
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{path} cannot be unpacked: {error}.", hint=_AGAIN) from None


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > MAX_FILE_BYTES or member.file_size > MAX_RATIO * max(member.compress_size, 1024):
        raise InputError(f"{member.filename} in the archive is too large to unpack.", hint=_AGAIN)
    try:
        with archive.open(member) as file:
            return file.read(MAX_FILE_BYTES)
    except _ARCHIVE_ERRORS as error:
        raise InputError(f"{member.filename} cannot be unpacked: {error}.", hint=_AGAIN) from None


def _read_file(path: Path, *, within: Path | None = None) -> bytes:
    try:
        return read_regular(path, max_bytes=MAX_FILE_BYTES, within=within)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InputError(f"{path} is larger than 1 GiB.", hint="Split the file, and import its parts.") from None
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Check the path and its rights.") from None


def _load(name: str, read: Callable[[], bytes]) -> JsonFile:
    try:
        raw = read()
        text = raw.decode(find_encoding(raw) or "utf-8").removeprefix("\ufeff")
    except InputError as error:
        return JsonFile(name, None, error)
    except UnicodeDecodeError as error:
        return JsonFile(name, None, InputError(f"the text is not valid {error.encoding}.", hint="Save it as UTF-8."))
    try:
        return JsonFile(name, json.loads(text))
    except (ValueError, RecursionError) as error:
        values = _read_start(text)
        what = f"it is not JSON: {error}."
        if values:
            what = f"it is not JSON after entry {len(values)}: {error}."
        return JsonFile(name, values or None, InputError(what, hint=_AGAIN))


def _read_start(text: str) -> list[JsonValue]:
    """Return the values of a JSON list up to the first one that is damaged or cut off."""
    values, decoder = list[JsonValue](), json.JSONDecoder()
    before, bracket, _ = text.partition("[")
    position = len(before) + 1
    while bracket and not before.strip():
        try:
            value, position = decoder.raw_decode(text, _end_of_gap(text, position))
        except (ValueError, RecursionError):
            break
        values.append(value)
    return values


def _end_of_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position
