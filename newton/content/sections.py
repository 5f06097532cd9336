"""The result of parsing a document: paragraphs under their headings, in reading order."""

from typing import NamedTuple

# A longer "heading" is a paragraph in large type.
MAX_HEADING_CHARS = 200
HEADING_SEPARATOR = " > "


class DocumentSection(NamedTuple):
    """The paragraphs under a heading.

    `heading` is the path of headings, such as "Install > Linux"; "" before the first one.
    """

    heading: str
    paragraphs: tuple[str, ...]


class ParsedDocument(NamedTuple):
    """A parsed document. The title is empty if the document has none."""

    title: str
    sections: tuple[DocumentSection, ...]


class SectionBuilder:
    """Collects headings and paragraphs in reading order, and groups them into sections. No text is lost."""

    def __init__(self) -> None:
        self.title = ""
        self._sections: list[DocumentSection] = []
        self._trail: list[tuple[int, str]] = []
        self._paragraphs: list[str] = []

    def add_heading(self, level: int, text: str) -> None:
        """Start a section under the nearest open heading of a higher rank. The first heading becomes the title.

        A text that is too long for a heading is added as a paragraph.
        """
        text = collapse_whitespace(text)
        if not text or len(text) > MAX_HEADING_CHARS:
            self.add_paragraph(text)
            return
        self._close(below=level)
        self._trail = [outer for outer in self._trail if outer[0] < level] + [(level, text)]
        self.title = self.title or text

    def add_paragraph(self, text: str) -> None:
        """Add a paragraph, without blank lines around it. An empty text is ignored."""
        if text.strip():
            self._paragraphs.append(text.strip("\n").rstrip())

    def build(self, *, title: str = "") -> ParsedDocument:
        """Return the document, with the title `title` or else its first heading. Call it once, at the end."""
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
    """Return the text with each run of white space, line ends included, replaced by one space."""
    return " ".join(text.split())
