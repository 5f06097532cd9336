"""A reply that is printed while it is received: rendered Markdown, or its text with the lines broken between words.

Each row is printed once and not replaced, so nothing depends on the height of the screen, and the terminal keeps all.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from newton.runtime.cli.markdown.markdown_rows import BLANKS, WORD_BREAK, MarkdownBlock, MarkdownRenderer, read_language
from newton.runtime.cli.printing import visible

CONTEXT_LINES = 100  # earlier lines that are read again for the colors of a line, such as the begin of a long text

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
# the beginning of a line that does not say yet to which block the line belongs
_UNDECIDED = re.compile(
    r"(?:[ \t>]|(?:[-*+]|\d{1,9}[.)])[ \t])*(?:[-*_+=~#`][-*_+=~# \t]*|`{3,}.*|~{3,}.*|\d{1,9}[.)]?[ \t]*)?"
)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_UNSETTLED_WORD = re.compile(r"(?:\S[*_~\]()]|`)\S*$")  # what follows may make its marks text
# the spaces and the mark of an item at the beginning of a line; the lines on which it is continued are indented
_PIECES = re.compile(rf"({WORD_BREAK.pattern})")  # words, and what is between them
_START = re.compile(r"[ \t]*(?:(?:[-*+•>]|\d{1,9}[.)])[ \t]+)?")


@dataclass(slots=True, kw_only=True)
class MarkdownStream:
    """Renders Markdown as it is received. `pending` is the last row while it is not complete.

    A row is complete when the next one has begun. A table, and a row with an open emphasis, link or code, is complete
    when its block ends. `count_columns` returns the width of the terminal, which may change between blocks.
    """

    count_columns: Callable[[], int]
    has_colors: bool
    pending: str = ""
    _source: str = ""  # of the open block, or of the open item of a list
    _printed: int = 0  # rows of it
    _is_held: bool = False  # until its next line, because it is a table, or code within an item or a quote
    _before: MarkdownBlock | None = None
    _renderer: MarkdownRenderer = field(init=False)
    _fence: str = ""  # of the open code block
    _language: str = ""
    _code: list[str] = field(default_factory=list[str])  # its last lines

    def __post_init__(self) -> None:
        self._renderer = MarkdownRenderer(columns=self.count_columns(), has_colors=self.has_colors)

    def add(self, text: str) -> str:
        """Add a part of the text, and return the complete rows."""
        self._source += text
        return "" if self._is_held and "\n" not in text else self._print(is_end=False)

    def release(self) -> str:
        """Return the rows that are held back, without a line break after a last row of text.

        What is added later begins a new row.
        """
        output = self._print(is_end=True)
        return output if self._fence else output.removesuffix("\n")

    def finish(self) -> str:
        """Return the rest of the reply, without a line break at its end."""
        output = self._print(is_end=True)
        if self._fence:
            output += self._to_output([self._renderer.render_rule(self._renderer.columns)])
        return output.removesuffix("\n")

    def _print(self, *, is_end: bool) -> str:
        output = ""
        while True:
            was_code = bool(self._fence)
            output += self._print_code(is_end=is_end) if was_code else self._print_blocks(is_end=is_end)
            if bool(self._fence) is was_code or not self._source:
                return output

    def _print_blocks(self, *, is_end: bool) -> str:
        """Return the complete rows up to the next code block, whose lines `_print_code` returns."""
        if not self._printed and self._renderer.columns != self.count_columns():
            self._renderer = MarkdownRenderer(columns=self.count_columns(), has_colors=self.has_colors)
        known, end, last = self._source.rpartition("\n")
        source = self._source if is_end or not _UNDECIDED.fullmatch(last) else known + end
        lines = self._source.split("\n")
        blocks = self._renderer.render(source, self._before, is_end=is_end)
        for place, block in enumerate(blocks):
            fence = _FENCE.fullmatch(lines[block.start]) if block.kind == "fence" else None
            if fence and block.anchor == block.start:
                return self._begin_code(blocks[: place + 1], fence, lines[block.start + 1 :])
        rows = [row for block in blocks for row in block.rows]
        open_block = None if is_end or not blocks else blocks[-1]
        output = self._print_rows(rows, open_block)
        if is_end:
            self._before, self._source, self._printed = blocks[-1] if blocks else self._before, "", 0
        elif open_block:
            self._forget(blocks, lines)
        return output

    def _print_rows(self, rows: Sequence[str], open_block: MarkdownBlock | None) -> str:
        """Print the rows that stay as they are, and keep the last one of the open block as pending."""
        settled, self.pending = len(rows), ""
        self._is_held = open_block is not None and open_block.kind in ("fence", "table_open")
        if open_block:
            is_settled = self._is_held or not _UNSETTLED_WORD.search(self._source)
            settled += (open_block.settled if is_settled else 0) - len(open_block.rows)
        if open_block and open_block.kind != "fence":
            self.pending = _fit(rows[-1], self._renderer.columns)
        printed, self._printed = self._printed, max(self._printed, settled)
        return "".join(f"{row}\n" for row in rows[printed:settled])

    def _forget(self, blocks: Sequence[MarkdownBlock], lines: Sequence[str]) -> None:
        """Forget the source before the open block or item."""
        done = [block for block in blocks if block.start < blocks[-1].anchor]
        if done:
            self._before, start = done[-1], blocks[-1].anchor
            self._printed -= sum(len(block.rows) for block in done)
            self._source = "\n".join(lines[start if lines[start - 1].strip(BLANKS) else start - 1 :])

    def _begin_code(self, blocks: Sequence[MarkdownBlock], fence: re.Match[str], rest: Sequence[str]) -> str:
        *done, code = blocks
        gap = code.rows[: code.gap]
        self._fence, self._language, self._code = fence["fence"], read_language(fence["info"]), []
        rows = [*(row for block in done for row in block.rows), *gap]
        rule = self._renderer.render_rule(self._renderer.columns, self._language)
        output = "".join(f"{row}\n" for row in rows[self._printed :]) + self._to_output([rule])
        self._source, self._printed, self._before = "\n".join(rest), 0, code
        return output

    def _print_code(self, *, is_end: bool) -> str:
        *lines, rest = self._source.split("\n")
        if is_end and rest:
            lines, rest = [*lines, rest], ""
        rows: list[Text] = []
        for place, line in enumerate(lines):
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                rows.append(self._renderer.render_rule(self._renderer.columns))
                self._fence, rest = "", "\n".join([*lines[place + 1 :], rest])
                break
            self._code = [*self._code[-CONTEXT_LINES:], line]
            rows.append(self._renderer.render_code(self._code, self._language)[-1])
        self._source, self.pending = rest, _fit(visible(rest), self._renderer.columns) if self._fence else ""
        return self._to_output(rows)

    def _to_output(self, texts: Sequence[Text]) -> str:
        return "".join(f"{row}\n" for row in self._renderer.to_rows(texts))


def _fit(row: str, columns: int) -> str:
    """Return a row without its styles and cut, if it would take a second row of the terminal, which would stay."""
    plain = _STYLE.sub("", row)
    return row if cell_len(plain) < columns else set_cell_size(plain, columns - 1)


@dataclass(slots=True, kw_only=True)
class WrappedStream:
    """Breaks the lines of a text between words as it is received. It has the methods of `MarkdownStream`."""

    count_columns: Callable[[], int]
    pending: str = ""
    _buffer: str = ""  # a word that may go on
    _line: str = ""
    _space: str = ""  # before the next word, if it fits
    _column: int = 0

    def add(self, text: str) -> str:
        """Add a part of the text, and return the complete words."""
        *lines, rest = (self._buffer + text).split("\n")
        output = "".join(self._print(line) + self._end_line() for line in lines)
        end = max((match.end() for match in WORD_BREAK.finditer(rest)), default=0)
        if not self._line and _START.fullmatch(rest[:end]):
            end = 0
        self._buffer = rest[end:]
        return output + self._print(rest[:end])

    def release(self) -> str:
        """Return the incomplete word that is held back. What is added later begins a new row."""
        text, self._buffer = self._buffer, ""
        output = self._print(text)
        self._end_line()
        return output

    finish = release

    def _end_line(self) -> str:
        self._line, self._space, self._column = "", "", 0
        return "\n"

    def _print(self, text: str) -> str:
        output = ""
        for place, piece in enumerate(_PIECES.split(text)):
            if place % 2 or not piece:
                self._space += piece.replace("\t", "    ")
                continue
            width = cell_len(self._space + piece)
            match = _START.match(self._line)
            indent = len(match[0].expandtabs(4)) if match else 0
            if self._column > indent and self._column + width > self.count_columns():
                output += f"\n{' ' * indent}"
                self._column, self._space, width = indent, "", cell_len(piece)
            output += self._space + piece
            self._line += self._space + piece
            self._column, self._space = self._column + width, ""
        return output
