"""Office documents as ZIP archives: limits on what one may unpack to, its XML files, its title and date."""

import io
from datetime import UTC, datetime
from xml.etree.ElementTree import Element, ParseError, XMLParser
from zipfile import BadZipFile, ZipFile

from newton.content.sections import MAX_HEADING_CHARS, collapse_whitespace
from newton.errors import InputError

_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MODIFIED = "{http://purl.org/dc/terms/}modified"
BROKEN = InputError("it is damaged.", hint="Open the document in its program, and save it again.")


def read_xml(archive: ZipFile, name: str) -> Element | None:
    """Parse an XML file of the archive; return None if it is missing. Raises InputError if it is broken.

    Entities are rejected: a few of them can expand to gigabytes, and Office documents have none.
    """
    try:
        raw = archive.read(name)
    except KeyError:
        return None
    except (BadZipFile, EOFError, OSError, ValueError, NotImplementedError):
        raise BROKEN from None
    if b"<!ENTITY" in raw:
        raise InputError("it declares XML entities.", hint="Open the document in its program, and save it again.")
    parser = XMLParser()
    try:
        parser.feed(raw)
        return parser.close()
    except ParseError:
        raise BROKEN from None


def read_properties(archive: ZipFile) -> tuple[str, datetime | None]:
    """Return the title of an Office document and the time of its last change; "" and None if it does not state them."""
    root = read_xml(archive, "docProps/core.xml")
    if root is None:
        return "", None
    title = collapse_whitespace(root.findtext(_TITLE) or "")[:MAX_HEADING_CHARS]
    try:
        modified = datetime.fromisoformat((root.findtext(_MODIFIED) or "").strip())
    except ValueError:
        return title, None
    return title, modified if modified.tzinfo else modified.replace(tzinfo=UTC)


MAX_UNPACKED_BYTES = 200 * 1024 * 1024
MAX_ENTRIES = 20_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the beginning of an encrypted Office document, and of the old formats


def open_archive(raw: bytes) -> ZipFile:
    """Open a ZIP archive after its directory is checked against limits on size.

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
