"""What every document becomes, whatever its format: paragraphs under their headings, in reading order."""

from typing import NamedTuple

# A longer "heading" is a paragraph that somebody set in large letters.
MAX_HEADING_CHARS = 200
HEADING_SEPARATOR = " > "


class DocumentSection(NamedTuple):
    """`heading` is the way down to it, such as "Install > Linux"; empty before the first heading."""

    heading: str
    paragraphs: tuple[str, ...]


class ParsedDocument(NamedTuple):
    """What a reader found in a document; `title` is empty when the document has none of its own."""

    title: str
    sections: tuple[DocumentSection, ...]


class SectionBuilder:
    """Takes headings and paragraphs as they come and sorts them into sections. No word of either is lost."""

    def __init__(self) -> None:
        self.title = ""
        self._sections: list[DocumentSection] = []
        self._trail: list[tuple[int, str]] = []
        self._paragraphs: list[str] = []

    def add_heading(self, level: int, text: str) -> None:
        """Opens a section below the nearest open heading of a lower level. The first heading is the title."""
        text = collapse_whitespace(text)
        if not text or len(text) > MAX_HEADING_CHARS:
            self.add_paragraph(text)
            return
        self._close(below=level)
        self._trail = [outer for outer in self._trail if outer[0] < level] + [(level, text)]
        self.title = self.title or text

    def add_paragraph(self, text: str) -> None:
        """Takes the text as it is, without the blank lines around it."""
        if text.strip():
            self._paragraphs.append(text.strip("\n").rstrip())

    def build(self, *, title: str = "") -> ParsedDocument:
        """All of it, under `title` or else the first heading. Nothing can be added afterwards."""
        self._close(below=0)
        return ParsedDocument(collapse_whitespace(title)[:MAX_HEADING_CHARS] or self.title, tuple(self._sections))

    def _close(self, *, below: int) -> None:
        # A heading with nothing under it would be found nowhere: it is then all that its section says.
        if self._trail and not self._paragraphs and below <= self._trail[-1][0]:
            self._paragraphs = [self._trail[-1][1]]
        if self._paragraphs:
            self._sections.append(
                DocumentSection(HEADING_SEPARATOR.join(text for _, text in self._trail), tuple(self._paragraphs))
            )
            self._paragraphs = []


def collapse_whitespace(text: str) -> str:
    """The text on one line, for prose whose line ends mean nothing."""
    return " ".join(text.split())
