"""The result of parsing a document: paragraphs under their headings, in reading order, with their positions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

# A longer "heading" is a paragraph in large type.
MAX_HEADING_CHARS = 200
HEADING_SEPARATOR = " > "

LineSpan = tuple[int, int]  # the first and the last line or row, from 1
UNKNOWN_SPAN: LineSpan = (0, 0)


class DocumentSection(NamedTuple):
    """The paragraphs under a heading.

    `heading` is the path of headings, such as "Install > Linux"; "" before the first one. `place` is where in the file
    the section is, such as "page 3" or the name of a function; "" if only the lines say it. `spans` are the lines (or
    rows, as `unit` says) of each paragraph; () if they are unknown. With `by_line`, the lines of a paragraph are never
    joined or split between passages, and passages do not overlap. Each passage of the section begins with `repeated`.
    `date` is the date of the text itself, such as that of an e-mail.
    """

    heading: str
    paragraphs: tuple[str, ...]
    spans: tuple[LineSpan, ...] = ()
    place: str = ""
    unit: Literal["line", "row"] = "line"
    by_line: bool = False
    repeated: str = ""
    date: datetime | None = None

    def locate(self, first: int, last: int) -> str:
        """Return the position of the lines or rows `first` to `last` of the section as text; 0 is an unknown position.

        >>> DocumentSection("", (), place="sheet Sales", unit="row").locate(2, 30)
        'sheet Sales, rows 2-30'
        >>> DocumentSection("", ()).locate(7, 7), DocumentSection("", (), place="page 3").locate(0, 0)
        ('line 7', 'page 3')
        """
        if not first:
            return self.place
        lines = f"{self.unit} {first}" if first == last else f"{self.unit}s {first}-{last}"
        return f"{self.place}, {lines}" if self.place else lines


class ParsedDocument(NamedTuple):
    """A parsed document. `title` is empty if the document states none, and `date` is None if it states none."""

    title: str
    sections: tuple[DocumentSection, ...]
    date: datetime | None = None


class SectionBuilder:
    """Collects headings and paragraphs in reading order, and groups them into sections. No text is lost."""

    def __init__(self) -> None:
        self.title = ""
        self._sections: list[DocumentSection] = []
        self._trail: list[tuple[int, str]] = []
        self._heading_span = UNKNOWN_SPAN
        self._paragraphs: list[tuple[str, LineSpan]] = []

    def add_heading(self, level: int, text: str, span: LineSpan = UNKNOWN_SPAN) -> None:
        """Start a section under the nearest open heading of a higher rank (lower `level`).

        The first heading becomes the title. A text that is too long for a heading is added as a paragraph.
        """
        text = collapse_whitespace(text)
        if not text or len(text) > MAX_HEADING_CHARS:
            self.add_paragraph(text, span)
            return
        self._close(below=level)
        self._trail = [outer for outer in self._trail if outer[0] < level] + [(level, text)]
        self._heading_span = span
        self.title = self.title or text

    def add_paragraph(self, text: str, span: LineSpan = UNKNOWN_SPAN) -> None:
        """Add a paragraph, without blank lines around it. An empty text is ignored."""
        if text.strip():
            self._paragraphs.append((text.strip("\n").rstrip(), span))

    def build(self, *, title: str = "") -> ParsedDocument:
        """Return the document, with the title `title` or else its first heading. Call it once, at the end."""
        self._close(below=0)
        return ParsedDocument(collapse_whitespace(title)[:MAX_HEADING_CHARS] or self.title, tuple(self._sections))

    def _close(self, *, below: int) -> None:
        # Search indexes only paragraphs, so a heading without text becomes the paragraph of its section.
        if self._trail and not self._paragraphs and below <= self._trail[-1][0]:
            self._paragraphs = [(self._trail[-1][1], self._heading_span)]
        if self._paragraphs:
            heading = HEADING_SEPARATOR.join(text for _, text in self._trail)
            texts, spans = zip(*self._paragraphs, strict=True)
            self._sections.append(DocumentSection(heading, texts, spans if any(map(any, spans)) else ()))
            self._paragraphs = []


def collapse_whitespace(text: str) -> str:
    """Return the text with each run of white space, line ends included, replaced by one space."""
    return " ".join(text.split())


def join_heading(parts: Sequence[str]) -> str:
    """Return the non-empty parts of a path of headings as one text, of at most MAX_HEADING_CHARS characters."""
    return HEADING_SEPARATOR.join(filter(None, parts))[:MAX_HEADING_CHARS]
