"""Parsing of presentations (PPTX): one section for each slide."""

import posixpath
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from newton.content.formats.office_files import BROKEN, open_archive, read_properties, read_xml
from newton.content.sections import MAX_HEADING_CHARS, DocumentSection, ParsedDocument, collapse_whitespace
from newton.errors import InputError

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SLIDES = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_REFERENCE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TARGETS = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_NOTES = "/relationships/notesSlide"
_MAIN = "ppt/presentation.xml"


class _Shape(NamedTuple):
    """The texts of a shape, one for each paragraph or table row, and the role of its placeholder."""

    role: str
    texts: list[str]


def read(raw: bytes) -> ParsedDocument:
    """Parse the slides in their order, each with its title, texts, table rows and notes.

    Call it only in a subprocess with limits. Raises InputError if the document is broken or encrypted, or unpacks to
    too much.
    """
    with open_archive(raw) as archive:
        presentation = read_xml(archive, _MAIN)
        if presentation is None:
            raise InputError("it is no presentation.", hint="Open the document in its program, and save it as PPTX.")
        targets = _read_targets(archive, _MAIN)
        names = [targets.get(slide.get(_REFERENCE, ""), ("", ""))[1] for slide in presentation.iter(f"{_SLIDES}sldId")]
        slides = [_read_slide(archive, name, number) for number, name in enumerate(names, start=1)]
        title, modified = read_properties(archive)
    sections = tuple(section for section in slides if section.paragraphs)
    first = next((section.heading for section in sections if section.heading), "")
    return ParsedDocument(title or first, sections, modified)


def _read_targets(archive: ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """Return the files to which a file refers: by id, the type of the reference and the name of the file."""
    folder, base = posixpath.split(name)
    root = read_xml(archive, f"{folder}/_rels/{base}.rels")
    if root is None:
        return {}
    found = root.iter(f"{_TARGETS}Relationship")
    return {
        one.get("Id", ""): (one.get("Type", ""), posixpath.normpath(posixpath.join(folder, one.get("Target", ""))))
        for one in found
    }


def _read_slide(archive: ZipFile, name: str, number: int) -> DocumentSection:
    root = read_xml(archive, name)
    if root is None:
        raise BROKEN
    shapes = list(_iter_shapes(root))
    title = next((shape.texts for shape in shapes if "title" in shape.role.lower() and shape.texts), list[str]())
    heading = collapse_whitespace(" ".join(title))
    texts = [text for shape in shapes for text in shape.texts]
    notes = [target for kind, target in _read_targets(archive, name).values() if kind.endswith(_NOTES)]
    if notes and (root := read_xml(archive, notes[0])) is not None:
        spoken = [text for shape in _iter_shapes(root) if shape.role == "body" for text in shape.texts]
        texts += [f"Notes: {' '.join(spoken)}"] if spoken else []
    return DocumentSection(heading[:MAX_HEADING_CHARS], tuple(texts), place=f"slide {number}")


def _iter_shapes(root: Element) -> Iterator[_Shape]:
    for shape in root.iter():
        if shape.tag == f"{_SLIDES}sp":
            placeholder = shape.find(f".//{_SLIDES}ph")
            role = "" if placeholder is None else placeholder.get("type", "body")
            yield _Shape(role, [text for part in shape.iter(f"{_DRAWING}p") if (text := _read_text(part))])
        elif shape.tag == f"{_DRAWING}tbl":
            yield _Shape("", [text for row in shape.iter(f"{_DRAWING}tr") if (text := _read_row(row))])


def _read_row(row: Element) -> str:
    cells = [" ".join(map(_read_text, cell.iter(f"{_DRAWING}p"))) for cell in row.iter(f"{_DRAWING}tc")]
    return " | ".join(cells) if any(cells) else ""


def _read_text(paragraph: Element) -> str:
    text, line_break = f"{_DRAWING}t", f"{_DRAWING}br"
    nodes = (node for node in paragraph.iter() if node.tag in (text, line_break))
    return collapse_whitespace("".join((node.text or "") if node.tag == text else " " for node in nodes))
