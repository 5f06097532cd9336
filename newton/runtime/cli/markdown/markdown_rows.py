"""Rows of a terminal for the Markdown of a reply: each text, heading, code, rule and table with its list and quote."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import token as code_token
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from newton.operations.text_format import pluralize
from newton.runtime.cli.printing import visible

MAX_RULE_COLUMNS = 60
MIN_CELL_COLUMNS = 8  # if a terminal has fewer for a cell, each row of a table is printed as a list

# Scripts without spaces, in which a row may end after each character, and the marks that do not begin a row.
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\U00020000-\U0003fffd"
)
_CLOSING = r"、。，．！？：；）」』】〉》〕々ーぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?:;)\]}*_~`\"'’”"
WORD_BREAK = re.compile(rf"[ \t]+|(?<=[{_WIDE}])(?=[^\s{_CLOSING}])|(?<=\S)(?=[{_WIDE}])(?=[^{_CLOSING}])")

# Unlike CommonMark: a line break stays one, `---` below a text is a rule, and nothing is left out (HTML, definitions).
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
_PARSER.disable(["newline", "lheading", "reference", "html_block"])
_STYLES = {"strong_open": "bold", "em_open": "italic", "s_open": "strike", "link_open": "underline"}
_LINE_BREAK = re.compile(r"\s*<br\s*/?>\s*", re.IGNORECASE)
_BOX = re.compile(r"\[([ xX])\][ \t]+")
_OPENS = re.compile(r"(?<!\w)_|\*(?=\S)|~~|[`\[\]<|]")  # what later text may make an emphasis, a link, code or a table
_QUOTE_MARK = "│ "
BLANKS = " \t>"  # of which an empty line consists, also one of a quote
_CODE_THEME = ANSISyntaxTheme(
    {
        code_token.Comment: Style(dim=True),
        code_token.Keyword: Style(color="magenta"),
        code_token.Operator.Word: Style(color="magenta"),
        code_token.Name.Function: Style(color="blue"),
        code_token.Name.Class: Style(color="blue"),
        code_token.Name.Tag: Style(color="blue"),
        code_token.Name.Decorator: Style(color="blue"),
        code_token.Name.Builtin: Style(color="cyan"),
        code_token.String: Style(color="green"),
        code_token.Number: Style(color="yellow"),
        code_token.Generic.Inserted: Style(color="green"),
        code_token.Generic.Deleted: Style(color="yellow"),
    }
)


@dataclass(slots=True, kw_only=True)
class MarkdownBlock:
    """The rows of a text, heading, code block, rule or table, with the marks of its quotes and list items.

    `start` is the line of the source at which the block begins; `anchor` is that of the outermost quote or item that
    contains it, or `start`. While more of the reply may follow, only the first `settled` rows are final.
    """

    kind: str
    start: int
    anchor: int
    quote_depth: int
    rows: list[str]
    settled: int = 0
    gap: int = 0  # empty rows at its begin


@dataclass(slots=True, kw_only=True)
class MarkdownRenderer:
    """Renders Markdown as rows of text with escape sequences, for a terminal that is `columns` wide."""

    columns: int
    has_colors: bool
    console: Console = field(init=False)

    def __post_init__(self) -> None:
        self.console = Console(
            file=StringIO(), width=self.columns, force_terminal=True, color_system="standard", _environ={}
        )
        self.console.no_color = not self.has_colors

    def render(self, source: str, before: MarkdownBlock | None, *, is_end: bool) -> list[MarkdownBlock]:
        """Return the blocks of a Markdown source, which goes on unless `is_end`. `before` is the block before it."""
        lines, blocks = source.split("\n"), list[MarkdownBlock]()
        for block in self._iter_blocks(_PARSER.parse(source), is_end=is_end):
            line_before = lines[block.start - 1].strip(BLANKS) if block.start else "none"
            if before and (not line_before or block.kind == "heading_open" or before.kind in ("fence", "table_open")):
                block.rows.insert(0, (_QUOTE_MARK * min(block.quote_depth, before.quote_depth)).rstrip())
                block.settled, block.gap = block.settled + 1, 1
            blocks.append(block)
            before = block
        return blocks

    def render_code(self, lines: Sequence[str], language: str) -> list[Text]:
        """Return the rows of lines of code in the colors of their language, if it is known."""
        code = [visible(line) for line in lines]
        if not (language and self.has_colors):
            return [Text(line) for line in code]
        text = Syntax("", language, theme=_CODE_THEME, tab_size=0).highlight("\n".join(code))
        return list(text.split("\n", allow_blank=True))[: len(lines)]

    @staticmethod
    def render_rule(columns: int, label: str = "") -> Text:
        """Return the row above or below a code block, with `label` in it."""
        width = min(columns, MAX_RULE_COLUMNS)
        start = f"── {visible(label)} " if label and len(label) + 5 < width else ""
        return Text(start + "─" * (width - len(start)), "dim")

    def to_rows(self, texts: Sequence[Text | Table], columns: int | None = None) -> list[str]:
        """Return each text as a row, and a table as rows, at most `columns` wide, with escape sequences."""
        rows: list[str] = []
        for text in texts:
            with self.console.capture() as capture:
                self.console.print(text, soft_wrap=isinstance(text, Text), width=columns, highlight=False)
            rows += [row.rstrip() for row in capture.get().removesuffix("\n").split("\n")]
        return rows

    def _iter_blocks(self, tokens: Sequence[Token], *, is_end: bool) -> Iterator[MarkdownBlock]:
        """Yield the blocks of parsed Markdown."""
        # for each open quote or item: the text before its first row, and the text before its others
        marks: list[tuple[str, str]] = []
        anchor = 0
        for place, token in enumerate(tokens):
            start = token.map[0] if token.map else anchor
            if token.map and token.level <= (token.type == "list_item_open") and token.nesting >= 0:
                anchor = start
            match token.type:
                case "blockquote_open":
                    marks.append((_QUOTE_MARK, _QUOTE_MARK))
                case "list_item_open":
                    mark = f"{token.info}{token.markup} " if token.info else "• "
                    marks.append((mark, " " * len(mark)))
                case "blockquote_close" | "list_item_close":
                    mark, rest = marks.pop()
                    if mark not in (rest, _QUOTE_MARK):  # an empty item
                        yield self._begin("item", start, anchor, [*marks, (mark.rstrip(), "")], [Text()])
                        marks[:] = [(rest, rest) for _, rest in marks]
                case "fence" | "code_block" | "hr" | "heading_open" | "paragraph_open" | "table_open":
                    yield self._render_block(tokens[place:], anchor, marks, is_end=is_end)
                    marks[:] = [(rest, rest) for _, rest in marks]
                case _:
                    pass

    def _render_block(
        self, tokens: Sequence[Token], anchor: int, marks: list[tuple[str, str]], *, is_end: bool
    ) -> MarkdownBlock:
        token = tokens[0]
        start = token.map[0] if token.map else 0
        columns = self.columns - cell_len(self._cut("".join(rest for _, rest in marks)))
        match token.type:
            case "fence" | "code_block":
                language = read_language(token.info)
                rows = self.render_code(token.content.removesuffix("\n").split("\n"), language)
                if token.type == "fence":
                    rows = [self.render_rule(columns, language), *rows, self.render_rule(columns)]
                block = self._begin(token.type, start, anchor, marks, rows)
                block.settled = len(rows) - (2 if token.type == "fence" else 1)
                return block
            case "hr":
                return self._begin("hr", start, anchor, marks, [Text("─" * columns, "dim")])
            case "table_open":
                if is_end or tokens[-1].type != "table_close":
                    return self._begin("table_open", start, anchor, marks, self._render_table(tokens, columns))
                count = pluralize(sum(one.type == "tr_open" for one in tokens) - 1, "row")
                return self._begin("table_open", start, anchor, [], [Text(f"Receiving a table: {count} …", "dim")])
            case _:
                inline = tokens[1]
                if marks and marks[-1][0] == "• " and (box := _BOX.match(inline.content)):
                    marks[-1] = (f"{'☐' if box[1] == ' ' else '☑'} ", "  ")
                    inline.children = _PARSER.parseInline(inline.content[box.end() :])[0].children
                text = self._to_text(inline)
                if token.type == "heading_open":
                    text.stylize("bold underline" if token.tag == "h1" else "bold")
                rows = list(_wrap(text, columns))
                block = self._begin(token.type, start, anchor, marks, rows)
                block.settled = len(list(_wrap(text[: self._find_open(inline)], columns))) - 1
                return block

    def _begin(
        self, kind: str, start: int, anchor: int, marks: Sequence[tuple[str, str]], rows: Sequence[Text]
    ) -> MarkdownBlock:
        first, rest = (self._cut("".join(mark[which] for mark in marks)) for which in (0, 1))
        texts = self.to_rows(rows)
        marked = [f"{first if place == 0 else rest}{row}".rstrip() for place, row in enumerate(texts)]
        depth = sum(mark == _QUOTE_MARK for mark, _ in marks)
        return MarkdownBlock(kind=kind, start=start, anchor=anchor, quote_depth=depth, rows=marked)

    def _cut(self, marks: str) -> str:
        """Return the marks before a row, of which the first are left out if they take more than half of it."""
        return marks[max(len(marks) - self.columns // 2, 0) :]

    def _to_text(self, inline: Token) -> Text:
        """Return an inline token as text with its styles and link addresses. Without colors, code keeps its marks."""
        text, styles, links = Text(), list[str](), list[tuple[str, int]]()
        for token in inline.children or ():
            if token.nesting == 1:
                styles.append(_STYLES.get(token.type, ""))
                links += [(_clean(str(token.attrGet("href"))), len(text))] if token.type == "link_open" else []
            elif token.nesting == -1:
                styles.pop()
                if token.type == "link_close":
                    address, start = links.pop()
                    text.append(f" ({address})" if address.removeprefix("mailto:") != text.plain[start:] else "", "dim")
            elif token.type == "image":
                text.append(f"{_clean(token.content or 'image')} ({_clean(str(token.attrGet('src')))})")
            elif token.type == "code_inline":
                mark = "" if self.has_colors else token.markup
                text.append(f"{mark}{_clean(token.content)}{mark}", " ".join([*styles, "cyan"]))
            else:
                content = _LINE_BREAK.sub("\n", _clean(token.content))
                text.append("\n" if token.type == "hardbreak" else content, " ".join(styles))
        return text

    def _find_open(self, inline: Token) -> int | None:
        """Return where a text has a mark that may begin an emphasis, code or link; None if it has none."""
        for place, token in enumerate(inline.children or ()):
            if token.type == "text" and (match := _OPENS.search(token.content)):
                known = Token("inline", "", 0, children=[*(inline.children or ())[:place]])
                return len(self._to_text(known)) + match.start()
        return None

    def _render_table(self, tokens: Sequence[Token], columns: int) -> list[Text]:
        """Return a table, or if it is too wide each of its rows as lines "head: cell"."""
        rows: list[list[Token]] = []
        alignments: list[str] = []
        for place, token in enumerate(tokens):
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                rows[-1].append(tokens[place + 1])
                alignments.append(str(token.attrGet("style") or "").rpartition(":")[2])
        head, *body = [[self._to_text(cell) for cell in row] for row in rows]
        if len(head) * (MIN_CELL_COLUMNS + 3) > columns:
            return list(_list_cells(head, body))
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for cell, alignment in zip(head, alignments, strict=False):
            table.add_column(cell, justify="right" if alignment == "right" else "center" if alignment else "left")
        for row in body:
            table.add_row(*row)
        return [Text.from_ansi(row) for row in self.to_rows([table], columns)]


def read_language(info: str) -> str:
    """Return the language in the first line of a code block, after the fence; "" if it names none."""
    return "".join(info.split()[:1]).lower()


def _list_cells(head: Sequence[Text], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    for number, row in enumerate(rows):
        if number:
            yield Text()
        for name, cell in zip(head, row, strict=False):
            yield Text(" ").join([Text.assemble(name, ":", style="bold"), *cell.split("\n")])


def _clean(text: str) -> str:
    return visible(text).replace("\t", "    ")  # an entity can stand for a control character


def _wrap(text: Text, columns: int) -> Iterator[Text]:
    """Yield the rows of a text; those of a line that is broken begin with its spaces."""
    for line in text.split("\n", allow_blank=True):
        line.rstrip()
        indent = line.plain[: len(line.plain) - len(line.plain.lstrip())]
        first, *rest = line.divide(find_row_breaks(line.plain, columns, len(indent)))
        for row in (first, *(Text(indent).append_text(one) for one in rest)):
            row.rstrip()
            yield row


def find_row_breaks(line: str, columns: int, indent: int = 0) -> list[int]:
    """Return the positions of `line` at which its rows after the first one begin. These are indented by `indent`.

    A word that is longer than a row is left to the terminal, so that a long address can be copied.

    >>> find_row_breaks("one two three", 8), find_row_breaks("see http://example.org", 8)
    ([8], [4])
    """
    breaks: list[int] = []
    start = place = 0
    for end, after in [*((match.start(), match.end()) for match in WORD_BREAK.finditer(line)), (len(line), len(line))]:
        if place > start and cell_len(line[start:end]) > columns - (indent if breaks else 0):
            breaks.append(place)
            start = place
        place = after if line[start:end].strip() else start
    return breaks
