"""Parsing of Word documents (DOCX), by conversion to HTML."""

import io

import mammoth

from newton.content.formats import webpage
from newton.content.formats.office_files import open_archive, read_properties
from newton.content.sections import ParsedDocument
from newton.errors import InputError

_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"


def read(raw: bytes) -> ParsedDocument:
    """Parse a Word document into headings, paragraphs, list items, table rows and notes, without images.

    Call it only in a subprocess with limits: on a malformed document mammoth may raise any exception. Raises
    InputError if the document is broken or encrypted, or unpacks to too much.
    """
    with open_archive(raw) as archive:
        if "word/document.xml" not in archive.namelist() or b"<!ENTITY" in archive.read("word/document.xml"):
            raise InputError("it is no Word document.", hint="Open the document in its program, and save it as DOCX.")
        title, modified = read_properties(archive)
    converted = mammoth.convert_to_html(io.BytesIO(raw), style_map=_STYLES, convert_image=lambda image: [])
    parsed = webpage.read(f"<body>{converted.value}</body>".encode())
    return parsed._replace(title=title or parsed.title, date=modified)
