"""Reads Markdown and plain text, in time proportional to their length whatever they hold."""

import html
import re
from collections.abc import Callable, Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from newton.content.sections import Outline, Reading, folded
from newton.errors import InputError

# Only blocks are parsed: what stands inside a paragraph stays as its author wrote it, addresses of links included.
_DEEPEST = 100
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable("table").disable(["inline", "reference"])

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(\w[\w-]*[ \t]*:.*\n(?:(?:\w[\w-]*[ \t]*:|[ \t#-]).*\n|\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.+)$", re.MULTILINE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>")
_UNSPOKEN = ("<script", "<style")

# reStructuredText, and many a plain text, underlines its headings.
_RULE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}")
# A line that begins like this was not broken for width alone: an item, a quote, a row, a log entry, code.
_OWN_LINE = re.compile(r"[\s\-*+•>|#\[\d]")


def markdown(text: str) -> Reading:
    """Headings, paragraphs, items, rows and code of CommonMark with tables; front matter is a paragraph too.

    Raises InputError when lists or quotes are nested too deep to be read.
    """
    outline, title = Outline(), ""
    if front := _FRONT_MATTER.match(text):
        outline.paragraph(front[1])
        title = _unquoted(found[1]) if (found := _TITLE.search(front[1])) else ""
        text = text[front.end() :]
    _Blocks(outline).take(_BLOCKS.parse(text))
    return outline.reading(title=title)


def plain(text: str) -> Reading:
    """Blank lines part paragraphs; a line underlined at least as long as itself is a heading."""
    outline, ranks = Outline(), list[str]()
    for block in _blocks(text):
        lines = block
        while heading := _underlined(lines):
            style, title, lines = heading
            if style not in ranks:
                ranks.append(style)
            outline.heading(ranks.index(style) + 1, title)
        if lines and not (len(lines) == 1 and _RULE.fullmatch(lines[0].strip())):
            outline.paragraph("\n".join(lines) if _structured(lines) else folded(" ".join(lines)))
    return outline.reading()


class _Blocks:
    """From markdown-it's stream of blocks to an outline."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._level = 0  # of the heading that is open
        self._mark = ""  # of the item that has said nothing yet
        self._row: list[str] | None = None
        self._takes: dict[str, Callable[[Token], None]] = {
            "heading_open": self._heading,
            "list_item_open": self._item,
            "list_item_close": self._item_end,
            "tr_open": self._row_start,
            "tr_close": self._row_end,
            "inline": self._inline,
            "fence": self._code,
            "code_block": self._code,
            "html_block": self._html,
        }

    def take(self, tokens: list[Token]) -> None:
        for token in tokens:
            if token.nesting == 1 and token.level >= _DEEPEST - 1:
                raise InputError("nests its lists and quotes too deep to be read.", hint="Flatten them.")
            if take := self._takes.get(token.type):
                take(token)

    def _heading(self, token: Token) -> None:
        # One inside a quote or an item heads nothing of the document.
        self._level = int(token.tag[1:]) if token.level == 0 else 0

    def _item(self, token: Token) -> None:
        self._mark = f"{token.info}{token.markup} "

    def _item_end(self, _: Token) -> None:
        self._mark = ""

    def _row_start(self, _: Token) -> None:
        self._row = []

    def _row_end(self, _: Token) -> None:
        self._outline.paragraph(" | ".join(self._row or []))
        self._row = None

    def _inline(self, token: Token) -> None:
        if self._level:
            self._outline.heading(self._level, _spoken(token.content))
            self._level = 0
        elif self._row is not None:
            self._row.append(folded(token.content))
        else:
            self._outline.paragraph(self._mark + folded(token.content))
            self._mark = ""

    def _code(self, token: Token) -> None:
        self._outline.paragraph(token.content)

    def _html(self, token: Token) -> None:
        """The words between the tags; a heading among them is one."""
        if token.content.lstrip().lower().startswith(_UNSPOKEN):
            return
        level, said, start, source = 0, list[str](), 0, _uncommented(token.content)
        for tag in _TAG.finditer(source):
            said.append(source[start : tag.start()])
            start = tag.end()
            if re.fullmatch(r"h[1-6]", tag[2].lower()):
                self._say(level, said)
                level, said = (0 if tag[1] else int(tag[2][1])), []
        self._say(level, [*said, source[start:]])

    def _say(self, level: int, said: list[str]) -> None:
        text = folded(html.unescape(" ".join(said)))
        if level:
            self._outline.heading(level, text)
        else:
            self._outline.paragraph(text)


def _spoken(source: str) -> str:
    """A heading without the marks of its emphasis, code and links."""
    if len(source) > 1_000:  # the parser of what is inside a line is not linear, and no heading is that long
        return source
    tokens: list[Token] = []
    _BLOCKS.inline.parse(source, _BLOCKS, {}, tokens)
    return "".join(token.content if token.type != "softbreak" else " " for token in tokens)


def _uncommented(source: str) -> str:
    first, *others = source.split("<!--")
    return first + "".join(other.partition("-->")[2] for other in others)


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines that no blank line parts."""
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield block
            block = []


def _underlined(lines: list[str]) -> tuple[str, str, list[str]] | None:
    """The style of the heading that the lines begin with, its text, and the lines after it."""
    over = len(lines) > 2 and lines[0] == lines[2] and _RULE.fullmatch(lines[0]) is not None
    title, *rest = lines[1:] if over else lines or [""]
    if not rest or _RULE.fullmatch(title) or not _RULE.fullmatch(rest[0]) or len(rest[0]) < len(title.strip()):
        return None
    return rest[0][0] * (1 + over), title, rest[1:]


def _structured(lines: list[str]) -> bool:
    return any(_OWN_LINE.match(line) for line in lines[1:]) or lines[0][0].isspace()
