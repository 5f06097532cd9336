"""Access to the JSON files of an export: one file, a folder, or a ZIP archive."""

import json
import lzma
import zipfile
import zlib
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from pydantic import JsonValue

from newton.errors import InputError

MAX_FILE_BYTES = 1024**3  # of one file, and of all that are read from an archive, unpacked
MAX_RATIO = 50  # of the unpacked to the packed size; text reaches about 20
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


def read_json_files(path: Path, pattern: str) -> dict[str, JsonValue]:
    """Return the content of the JSON files whose names match `pattern`, by name in alphabetical order.

    `path` is a ZIP archive, a folder, or a file, which is read whatever its name. Raises InputError for a file that
    cannot be read, is too large or is not JSON.
    """
    if path.is_dir():
        found = sorted(child for child in path.iterdir() if child.is_file() and fnmatch(child.name, pattern))
        return {child.name: _parse(child.name, _read_file(child)) for child in found}
    if zipfile.is_zipfile(path):
        return _read_archive(path, pattern)
    return {path.name: _parse(path.name, _read_file(path))}


def list_names(path: Path) -> Sequence[str]:
    """Return the names of the files in a ZIP archive or a folder, without their folders; of a file, its own name."""
    if path.is_dir():
        return [child.name for child in path.iterdir()]
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                return [Path(name).name for name in archive.namelist()]
        except _ARCHIVE_ERRORS as error:
            raise _build_archive_error(path, error) from None
    return [path.name]


def _read_archive(path: Path, pattern: str) -> dict[str, JsonValue]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if fnmatch(Path(one.filename).name, pattern)]
            if sum(one.file_size for one in members) > MAX_FILE_BYTES:
                raise InputError(f"{path} unpacks to more than 1 GiB.", hint="Import its parts one after the other.")
            return {one.filename: _parse(one.filename, _unpack(archive, one)) for one in members}
    except _ARCHIVE_ERRORS as error:
        raise _build_archive_error(path, error) from None


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > MAX_FILE_BYTES or member.file_size > MAX_RATIO * max(member.compress_size, 1024):
        raise InputError(f"{member.filename} in the archive is too large to unpack.", hint=_AGAIN)
    with archive.open(member) as file:
        return file.read(MAX_FILE_BYTES)


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path} is larger than 1 GiB.", hint="Split the file, and import its parts.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", hint="Check the path and its rights.") from None


def _parse(name: str, raw: bytes) -> JsonValue:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}.", hint=_AGAIN) from None


def _build_archive_error(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be unpacked: {error}.", hint=_AGAIN)
