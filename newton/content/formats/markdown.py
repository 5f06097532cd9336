"""Parsing of Markdown and plain text into sections, in linear time."""

import html
import re
from collections.abc import Iterator
from itertools import groupby, pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from newton.content.sections import UNKNOWN_SPAN, ParsedDocument, SectionBuilder, collapse_whitespace
from newton.errors import InputError

# Only blocks are parsed; inline text, including link addresses, stays as written.
_MAX_DEPTH = 100
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": _MAX_DEPTH}).enable("table").disable(["inline", "reference"])

_FRONT_MATTER = re.compile(
    r"---[ \t]*\n(\w[\w-]*[ \t]*:.*\n(?:(?:\w[\w-]*[ \t]*:|[ \t#-]).*\n|\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.+)$", re.MULTILINE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>")
_SKIPPED_TAGS = ("<script", "<style")

# Headings in reStructuredText, and often in plain text, are underlined.
_RULE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}")
# The start of an item, quote, row, log entry or line of code, which is not joined to the line before it.
_OWN_LINE = re.compile(r"[\s\-*+•>|#\[\d]")
_HARD_BREAK = re.compile(r"(?: {2,}|\\)$")  # of Markdown, at the end of a line
MIN_WRAPPED_CHARS = 60  # of the longest line of prose that was broken between words to fit
_KEPT_BLOCKS = frozenset({"blockquote", "bullet_list", "ordered_list", "table"})  # with their lines as they are written


def parse_markdown(text: str) -> ParsedDocument:
    """Parse CommonMark with tables and front matter. Raises InputError if lists or quotes are nested too deeply."""
    outline, title, lines_before = SectionBuilder(), "", 0
    if front := _FRONT_MATTER.match(text):
        lines_before = front[0].count("\n")
        outline.add_paragraph(front[1], (2, lines_before - 1))
        title = _strip_quotes(match[1]) if (match := _TITLE.search(front[1])) else ""
        text = text[front.end() :]
    _BlockWalker(outline, text.split("\n"), lines_before).walk(_BLOCKS.parse(text))
    return outline.build(title=title)


def parse_plain_text(text: str) -> ParsedDocument:
    """Parse plain text.

    Blank lines separate paragraphs; a line that is underlined over its full length is a heading.
    """
    outline, styles = SectionBuilder(), list[str]()
    for first, block in _split_blocks(text):
        lines, last = block, first + len(block) - 1
        while heading := _parse_underlined_heading(lines):
            style, title, lines = heading
            if style not in styles:
                styles.append(style)
            outline.add_heading(styles.index(style) + 1, title, (last - len(lines), last - len(lines)))
        if lines and not (len(lines) == 1 and _RULE.fullmatch(lines[0].strip())):
            outline.add_paragraph(_join_wrapped(lines), (last - len(lines) + 1, last))
    return outline.build()


class _BlockWalker:
    """Converts the block tokens of markdown-it to sections. Lists, quotes and tables keep the lines of the source.

    `lines_before` is the number of lines of front matter (the YAML at the beginning of the file).
    """

    def __init__(self, outline: SectionBuilder, lines: list[str], lines_before: int) -> None:
        self._outline, self._lines, self._lines_before = outline, lines, lines_before
        self._span = UNKNOWN_SPAN  # of the current block
        self._level = 0  # of the open heading
        self._is_kept = False  # inside a block whose lines were added as they are

    def walk(self, tokens: list[Token]) -> None:
        for token in tokens:
            if token.nesting == 1 and token.level >= _MAX_DEPTH - 1:
                raise InputError(
                    "the document nests lists or quotes too deeply.", hint="Use fewer levels of lists and quotes."
                )
            if token.map:
                self._span = (token.map[0] + 1 + self._lines_before, token.map[1] + self._lines_before)
            kind = token.type.removesuffix("_open").removesuffix("_close")
            if token.level == 0 and kind in _KEPT_BLOCKS:
                self._is_kept = token.nesting == 1
                if self._is_kept:
                    self._keep_lines(token)
            elif not self._is_kept:
                self._add(token)

    def _keep_lines(self, token: Token) -> None:
        first, last = token.map or (0, 0)
        lines = self._lines[first:last]
        while lines and not lines[-1].strip():
            lines.pop()
        begin = first + 1 + self._lines_before
        self._outline.add_paragraph("\n".join(lines), (begin, begin + len(lines) - 1))

    def _add(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._level = int(token.tag[1:])
            case "inline":
                self._inline(token)
            case "fence" | "code_block":
                # the fence itself is on the lines around the code
                fence = int(token.type == "fence")
                span = (self._span[0] + fence, self._span[0] + fence + token.content.count("\n") - 1)
                self._outline.add_paragraph(token.content, span)
            case "html_block":
                self._html(token)
            case _:
                pass

    def _inline(self, token: Token) -> None:
        if self._level:
            self._outline.add_heading(self._level, _strip_inline_markup(token.content), self._span)
            self._level = 0
        else:
            self._outline.add_paragraph(_join_wrapped(token.content.split("\n")), self._span)

    def _html(self, token: Token) -> None:
        """Add the text of an HTML block without its tags; an HTML heading starts a section."""
        if token.content.lstrip().lower().startswith(_SKIPPED_TAGS):
            return
        level, parts, start, source = 0, list[str](), 0, _strip_comments(token.content)
        for tag in _TAG.finditer(source):
            parts.append(source[start : tag.start()])
            start = tag.end()
            if re.fullmatch(r"h[1-6]", tag[2].lower()):
                self._add_text(level, parts)
                level, parts = (0 if tag[1] else int(tag[2][1])), []
        self._add_text(level, [*parts, source[start:]])

    def _add_text(self, level: int, parts: list[str]) -> None:
        text = collapse_whitespace(html.unescape(" ".join(parts)))
        if level:
            self._outline.add_heading(level, text, self._span)
        else:
            self._outline.add_paragraph(text, self._span)


def _strip_inline_markup(source: str) -> str:
    """Return the text of a heading without the markup of emphasis, code and links."""
    if len(source) > 1_000:  # the inline parser is not linear, and no heading is that long
        return source
    tokens: list[Token] = []
    _BLOCKS.inline.parse(source, _BLOCKS, {}, tokens)
    return "".join(token.content if token.type != "softbreak" else " " for token in tokens)


def _strip_comments(source: str) -> str:
    first, *others = source.split("<!--")
    return first + "".join(other.partition("-->")[2] for other in others)


def _strip_quotes(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _split_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the groups of lines between blank lines, each with the number of its first line, from 1."""
    first = 1
    for has_text, group in groupby(text.split("\n"), key=lambda line: bool(line.strip())):
        lines = [line.rstrip() for line in group]
        if has_text:
            yield first, lines
        first += len(lines)


def _parse_underlined_heading(lines: list[str]) -> tuple[str, str, list[str]] | None:
    """Return the underline style and the text of a heading at the start of the lines, and the lines that follow it.

    Return None if the lines do not start with an underlined heading.
    """
    over = len(lines) > 2 and lines[0] == lines[2] and _RULE.fullmatch(lines[0]) is not None
    title, *rest = lines[1:] if over else lines or [""]
    if not rest or _RULE.fullmatch(title) or not _RULE.fullmatch(rest[0]) or len(rest[0]) < len(title.strip()):
        return None
    return rest[0][0] * (1 + over), title, rest[1:]


def _join_wrapped(lines: list[str]) -> str:
    """Return prose that was broken between words to fit a width as one line, and other lines as they are."""
    width = max(map(len, lines[:-1]), default=0)
    is_structured = any(_OWN_LINE.match(line) for line in lines[1:]) or lines[0][:1].isspace()
    is_wrapped = width >= MIN_WRAPPED_CHARS and all(
        len(line) + 1 + len(after.split(maxsplit=1)[0]) > width and not _HARD_BREAK.search(line)
        for line, after in pairwise(lines)
    )
    return collapse_whitespace(" ".join(lines)) if is_wrapped and not is_structured else "\n".join(lines)
