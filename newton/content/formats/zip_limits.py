"""Limits on what a compressed document may unpack to. Office documents are ZIP archives."""

import io
from zipfile import BadZipFile, ZipFile

from newton.errors import InputError

MAX_UNPACKED_BYTES = 200 * 1024 * 1024
MAX_ENTRIES = 20_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the beginning of an encrypted Office document, and of the old formats


def open_archive(raw: bytes) -> ZipFile:
    """Open a ZIP archive after its directory is checked against the limits.

    `ZipFile` reads no more of an entry than the directory states. Raises InputError if the archive is broken or
    encrypted, or exceeds a limit.
    """
    if raw.startswith(_OLE):
        raise InputError("it is encrypted, or in an old Office format.", hint="Save a copy without a password.")
    try:
        archive = ZipFile(io.BytesIO(raw))
    except (BadZipFile, ValueError, OSError, NotImplementedError):
        raise InputError("it is no Office document.", hint="Open the file in its program, and save it again.") from None
    entries = archive.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MAX_UNPACKED_BYTES:
        what = f"it unpacks to {unpacked / 2**20:,.0f} MB; the limit is {MAX_UNPACKED_BYTES // 2**20} MB."
        raise InputError(what, hint="Split the document, or remove its images.")
    if len(entries) > MAX_ENTRIES:
        raise InputError(f"it contains more than {MAX_ENTRIES:,} files.", hint="Split the document.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise InputError("it is encrypted.", hint="Save a copy without a password.")
    return archive
