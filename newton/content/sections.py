"""The common form of a parsed document: paragraphs under their headings, in reading order."""

from typing import NamedTuple

# A longer "heading" is a paragraph in large type.
MAX_HEADING_CHARS = 200
HEADING_SEPARATOR = " > "


class DocumentSection(NamedTuple):
    """Paragraphs under a path of headings, such as "Install > Linux"; the path before the first heading is empty."""

    heading: str
    paragraphs: tuple[str, ...]


class ParsedDocument(NamedTuple):
    """The result of a parser; the title is empty when the document has none."""

    title: str
    sections: tuple[DocumentSection, ...]


class SectionBuilder:
    """Collects headings and paragraphs in order, and groups them into sections without loss of text."""

    def __init__(self) -> None:
        self.title = ""
        self._sections: list[DocumentSection] = []
        self._trail: list[tuple[int, str]] = []
        self._paragraphs: list[str] = []

    def add_heading(self, level: int, text: str) -> None:
        """Open a section below the nearest open heading of a lower level. The first heading is the title."""
        text = collapse_whitespace(text)
        if not text or len(text) > MAX_HEADING_CHARS:
            self.add_paragraph(text)
            return
        self._close(below=level)
        self._trail = [outer for outer in self._trail if outer[0] < level] + [(level, text)]
        self.title = self.title or text

    def add_paragraph(self, text: str) -> None:
        """Add the text without the blank lines around it."""
        if text.strip():
            self._paragraphs.append(text.strip("\n").rstrip())

    def build(self, *, title: str = "") -> ParsedDocument:
        """Return the document, titled `title` or else its first heading. Call it once, last."""
        self._close(below=0)
        return ParsedDocument(collapse_whitespace(title)[:MAX_HEADING_CHARS] or self.title, tuple(self._sections))

    def _close(self, *, below: int) -> None:
        # Search indexes only paragraphs, so a heading without text becomes the paragraph of its section.
        if self._trail and not self._paragraphs and below <= self._trail[-1][0]:
            self._paragraphs = [self._trail[-1][1]]
        if self._paragraphs:
            heading = HEADING_SEPARATOR.join(text for _, text in self._trail)
            self._sections.append(DocumentSection(heading, tuple(self._paragraphs)))
            self._paragraphs = []


def collapse_whitespace(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split())
