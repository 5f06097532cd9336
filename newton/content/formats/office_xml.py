"""Reading of the XML files in an Office document, and of its title and date."""

from datetime import UTC, datetime
from xml.etree.ElementTree import Element, ParseError, XMLParser
from zipfile import BadZipFile, ZipFile

from newton.content.sections import MAX_HEADING_CHARS, collapse_whitespace
from newton.errors import InputError

_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MODIFIED = "{http://purl.org/dc/terms/}modified"
BROKEN = InputError("it is damaged.", hint="Open the document in its program, and save it again.")


def read_xml(archive: ZipFile, name: str) -> Element | None:
    """Parse a file of the archive; None if it is missing. Raises InputError if it is broken.

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
