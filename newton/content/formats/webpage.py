"""Parsing of HTML into sections of text, without scripts and styles."""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from newton.content.sections import ParsedDocument, SectionBuilder, collapse_whitespace
from newton.errors import InputError

# A parser of HTML searches the open elements for most tags, so its time grows with the square of the nesting. Browsers
# stop at 512 levels.
MAX_DEPTH = 1_000

_SKIPPED_TAGS = frozenset({"script", "style", "nav", "template", "noscript", "svg", "iframe", "head"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCK_NAMES = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form header hgroup hr html legend li main menu ol optgroup option p search section summary table tbody td "
    "tfoot th thead ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
# A table row that contains any of these is page layout, not data.
# Elements without an end, and those whose end may be left out: an unclosed one is not nested in the one before.
_UNNESTED_NAMES = (
    "area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot option "
    "optgroup colgroup rb rt rtc rp html head body path rect"
)
_UNNESTED = frozenset(_UNNESTED_NAMES.split())
_TAG = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|textarea)\b.*?(?:</\1|\Z)|<(/?)([a-zA-Z][a-zA-Z0-9-]*)", re.DOTALL)
_LAYOUT_SELECTOR = "table, h1, h2, h3, h4, h5, h6, pre, ul, ol"


def read(raw: bytes) -> ParsedDocument:
    """Parse UTF-8 HTML into headings, paragraphs, list items, table rows and preformatted text, in source order.

    Call it only in a subprocess with limits: some short pages expand to billions of nodes. Raises InputError if
    elements are nested deeper than MAX_DEPTH.
    """
    text = raw.decode("utf-8")
    if measure_depth(text) > MAX_DEPTH:
        raise InputError(
            f"its HTML nests more than {MAX_DEPTH:,} elements in each other.", hint="Save the page as text or PDF."
        )
    page = LexborHTMLParser(text)
    outline = SectionBuilder()
    if page.body is not None:
        _HtmlWalker(outline).walk(page.body)
    title = page.head.css_first("title") if page.head is not None else None
    return outline.build(title=title.text() if title is not None else "")


def measure_depth(text: str) -> int:
    """Return how deeply the elements of an HTML text are nested at most, in linear time.

    >>> measure_depth("<div><p>a<p>b<ul><li>c</ul></div><div>"), measure_depth("<i>" * 5_000)
    (2, 5000)
    """
    depth = deepest = 0
    for tag in _TAG.finditer(text):
        if tag[3] and tag[3].lower() not in _UNNESTED:
            depth = max(depth - 1, 0) if tag[2] else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _HtmlWalker:
    """Converts the nodes of an HTML tree, visited in order, to sections."""

    def __init__(self, outline: SectionBuilder) -> None:
        self._outline = outline
        self._lines: list[list[str]] = [[]]  # of the open block; <br> starts a new line
        self._marker = ""  # of a list item without text so far
        self._row: list[str] | None = None
        self._headings = 0  # number of open headings
        self._verbatim = 0  # number of open <pre> elements

    def walk(self, root: LexborNode) -> None:
        for node, opens in _walk(root):
            tag = node.tag or ""
            if tag == "-text" and opens:
                self._lines[-1].append(node.text_content or "")
            elif tag == "br":
                self._break(opens=opens)
            elif tag == "pre":
                self._pre(opens=opens)
            elif tag in _HEADINGS:
                self._heading(_HEADINGS[tag], opens=opens)
            elif tag == "tr":
                self._tr(node, opens=opens)
            elif tag in _BLOCKS:
                self._block(tag, opens=opens)

    def _break(self, *, opens: bool) -> None:
        if opens and self._verbatim:
            self._lines[-1].append("\n")
        elif opens:
            self._lines.append([])

    def _pre(self, *, opens: bool) -> None:
        if opens and not self._verbatim:
            self._flush()
        self._verbatim += 1 if opens else -1
        if not opens and not self._verbatim:
            self._outline.add_paragraph("".join(part for line in self._lines for part in line))
            self._lines = [[]]

    def _heading(self, level: int, *, opens: bool) -> None:
        if opens and not self._headings:
            self._flush()
        self._headings += 1 if opens else -1
        if not opens and not self._headings:
            # Sphinx appends a link with this character to each heading.
            self._outline.add_heading(level, " ".join(self._take_lines()).removesuffix("¶"))

    def _tr(self, node: LexborNode, *, opens: bool) -> None:
        if self._row is not None and not opens:
            self._outline.add_paragraph(" | ".join(self._row))
            self._row = None
            return
        self._flush()
        self._row = [] if opens and node.css_first(_LAYOUT_SELECTOR) is None else None

    def _block(self, tag: str, *, opens: bool) -> None:
        if self._row is not None and tag in ("td", "th") and not opens:
            self._row.append(collapse_whitespace(" ".join(self._take_lines())))
        elif self._row is not None or self._headings:
            self._lines[-1].append(" ")
        else:
            self._flush()
            if tag == "li":
                self._marker = "- " if opens else ""

    def _flush(self) -> None:
        if self._verbatim:
            return
        for paragraph in re.split(r"\n{2,}", "\n".join(self._take_lines())):
            if paragraph.strip():
                self._outline.add_paragraph(self._marker + paragraph.strip())
                self._marker = ""

    def _take_lines(self) -> list[str]:
        """Return the lines of the open block, and remove them from it."""
        lines = [collapse_whitespace("".join(line)) for line in self._lines]
        self._lines = [[]]
        return lines


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Yield each visible node of an HTML tree twice: with True on entry, and with False on exit.

    It does not recurse: trees may be deep.
    """
    node = root
    while True:
        yield node, True
        child = None if node.tag in _SKIPPED_TAGS else node.first_child
        if child is not None:
            node = child
            continue
        while True:
            yield node, False
            if node.mem_id == root.mem_id:
                return
            if (following := node.next) is not None:
                node = following
                break
            parent = node.parent
            assert parent is not None, "every node but the root has one"
            node = parent
