"""Markdown that is rendered while it is received.

Each line is printed once and not replaced: nothing depends on the height of the screen, and the terminal keeps all of
it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from newton.runtime.cli.markdown.code_block import FENCE, CodeBlock
from newton.runtime.cli.markdown.inline_text import parse_inline, split_complete
from newton.runtime.cli.markdown.line_wrapper import LineWrapper
from newton.runtime.cli.markdown.table_block import is_delimiter_row, render_table
from newton.runtime.cli.markdown.text_styles import StyledText, TextStyle, to_terminal

# The beginning of a line that does not say yet to which block the line belongs.
_UNDECIDED = re.compile(
    r"[ \t>]*(?:[-*_=+][-*_=+ \t]*|#{1,6}[ \t]*|\d{1,9}[.)]?[ \t]*|`{1,2}|`{3}.*|~{1,2}|~{3}.*|\|.*"
    r"|(?:[-*+]|\d{1,9}[.)])[ \t]+\[[ xX]?\]?)?"
)
_QUOTE = re.compile(r"[ \t]{0,3}>[ \t]?")
_RULE = re.compile(r"[ \t]*(?:([-*_])(?:[ \t]*\1){2,}|=+)[ \t]*")
_HEADING = re.compile(r"[ \t]{0,3}(#{1,6})(?:[ \t]+|$)")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<marker>[-*+]|\d{1,9}[.)])(?P<space>[ \t]+|$)(?:\[(?P<box>[ xX])\][ \t]+)?")
_INDENT = re.compile(r"[ \t]*")
_QUOTE_MARK = "│ "


@dataclass(slots=True, kw_only=True)
class MarkdownStream:
    """Renders Markdown for a terminal as it is received: text, lists, quotes and headings word by word.

    A word is held back until it is complete, and so are an emphasis, a link, a line of code, and a table.
    `count_columns` returns the width of the terminal.
    """

    count_columns: Callable[[], int]
    has_colors: bool
    _wrapper: LineWrapper = field(init=False)
    _buffer: str = ""
    _output: list[str] = field(default_factory=list[str])
    _style: TextStyle | None = None  # of the open line of text; None at the beginning of a line
    _code: CodeBlock | None = None
    _quote_depth: int = 0
    _rows: list[str] = field(default_factory=list[str])  # of the open table
    _is_empty: bool = True  # whether nothing was printed
    _wants_gap: bool = False  # whether an empty line comes before the next block

    def __post_init__(self) -> None:
        self._wrapper = LineWrapper(count_columns=self.count_columns, has_colors=self.has_colors)

    @property
    def held_rows(self) -> int:
        """Return the number of rows of the open table, which are not printed yet."""
        return len(self._rows)

    def add(self, text: str) -> str:
        """Add a part of the text, and return the output for the terminal."""
        self._buffer += text
        while self._buffer and self._render_next():
            pass
        return self._take_output()

    def release(self) -> str:
        """Render what is held back, and return the output. The text may go on, on the same line."""
        text, self._buffer = self._buffer, ""
        if self._code is not None:
            if text:
                self._add_code_line(self._code, text)
        elif self._style is not None:
            self._add_inline(text)
        else:
            if text and self._rows and _is_row(text):
                self._rows.append(text)
                text = ""
            self._close_table()
            if text:
                self._add_inline(self._begin_text(text))
        return self._take_output()

    def finish(self) -> str:
        """Render the rest, end the line, and return the output."""
        output = self.release()
        if self._code is not None:
            self._end_code(self._code)
        self._end_line()
        return output + self._take_output()

    def begin_new_line(self) -> None:
        """Note that the line was ended, because something else was printed after `release`."""
        self._wrapper.end_line()

    def _render_next(self) -> bool:
        """Render the next part of the buffer. Return False if it says too little yet."""
        line, end, rest = self._buffer.partition("\n")
        if self._style is not None and not end:
            complete, self._buffer = split_complete(line)
            self._add_inline(complete)
            return False
        if self._style is not None:
            self._add_inline(line.removesuffix("\\"))  # it would break the line
            self._end_line()
            self._buffer = rest
        elif end:
            self._buffer = rest
            self._add_line(line)
        elif self._code is not None or _UNDECIDED.fullmatch(line):
            return False
        else:
            self._close_table()
            self._buffer = self._begin_text(line)
        return True

    def _add_line(self, line: str) -> None:
        """Render a complete line."""
        depth, text = _split_quote(line)
        if self._code is not None and (depth or not self._quote_depth):
            self._add_code_line(self._code, text if self._quote_depth else line)
            return
        if self._code is not None:
            self._end_code(self._code)
        if not self._add_row(text, depth):
            self._add_block_line(line, text, depth)

    def _add_row(self, text: str, depth: int) -> bool:
        """Hold a row of a table, and close a table that has ended. Return False if the line is no row."""
        is_row = _is_row(text)
        if self._rows and not (is_row and (len(self._rows) > 1 or is_delimiter_row(text))):
            self._close_table()
        if is_row and not self._rows:
            self._begin_block(depth)
        self._rows += [text] if is_row else []
        return is_row

    def _add_block_line(self, line: str, text: str, depth: int) -> None:
        if not text.strip():
            self._wants_gap = True
        elif fence := FENCE.fullmatch(text):
            self._begin_code(fence, depth)
        elif _RULE.fullmatch(text):
            self._begin_block(depth)
            self._print_line([StyledText("─" * self._text_columns, TextStyle.FAINT)])
        else:
            self._add_inline(self._begin_text(line).removesuffix("\\"))
            self._end_line()

    def _begin_text(self, text: str) -> str:
        """Begin a line of a paragraph, heading or item, and return its text without the marks."""
        depth, text = _split_quote(text)
        heading, item = _HEADING.match(text), _ITEM.match(text)
        self._begin_block(depth, needs_gap=heading is not None)
        self._style = TextStyle.PLAIN
        start, indent = "", ""
        if heading:
            self._style = TextStyle.BOLD | (TextStyle.UNDERLINED if heading[1] == "#" else TextStyle.PLAIN)
            end = heading.end()
        elif item:
            marker = item["marker"] if item["marker"][-1] in ".)" else "•"
            if item["box"]:
                marker = "☐" if item["box"].isspace() else "☑"
            start = f"{item['indent']}{marker} ".expandtabs(4)
            indent, end = " " * len(start), item.end()
        else:
            match = _INDENT.match(text)
            assert match is not None, "the pattern matches the empty text"
            start = indent = match[0].expandtabs(4)
            end = match.end()
        marks = self._quote_marks
        self._output.append(self._wrapper.begin_line([*marks, StyledText(start)], [*marks, StyledText(indent)]))
        return text[end:]

    def _add_inline(self, text: str) -> None:
        style = self._style or TextStyle.PLAIN
        parts = parse_inline(text, has_colors=self.has_colors)
        self._output.append(self._wrapper.add(StyledText(part, one | style) for part, one in parts))

    def _end_line(self) -> None:
        self._output.append(self._wrapper.end_line())
        self._style = None

    def _begin_block(self, quote_depth: int, *, needs_gap: bool = False) -> None:
        """Print the empty line before a block, if there is one."""
        is_same_quote = 0 < quote_depth <= self._quote_depth
        if (self._wants_gap or needs_gap) and not self._is_empty:
            self._output.append(f"{_QUOTE_MARK * quote_depth if is_same_quote else ''}".rstrip() + "\n")
        self._quote_depth, self._wants_gap, self._is_empty = quote_depth, False, False

    def _begin_code(self, fence: re.Match[str], quote_depth: int) -> None:
        self._begin_block(quote_depth)
        language = "".join(fence["info"].split()[:1])
        self._code = CodeBlock(fence=fence["fence"], language=language.lower(), has_colors=self.has_colors)
        self._print_line([self._code.render_rule(self._text_columns, language)])

    def _add_code_line(self, code: CodeBlock, line: str) -> None:
        if code.is_closed_by(line):
            self._end_code(code)
        else:
            self._print_line(code.render_line(line))

    def _end_code(self, code: CodeBlock) -> None:
        self._print_line([code.render_rule(self._text_columns)])
        self._code, self._wants_gap = None, True

    def _close_table(self) -> None:
        """Print the rows of the open table. A row alone is text."""
        rows, self._rows = self._rows, []
        if len(rows) == 1:
            self._add_inline(self._begin_text("> " * self._quote_depth + rows[0]))
            self._end_line()
        elif rows:
            marks = "".join(mark.text for mark in self._quote_marks)
            lines = render_table(rows, self._text_columns, has_colors=self.has_colors)
            self._output += [f"{marks}{line}\n" for line in lines]
            self._wants_gap = True

    @property
    def _quote_marks(self) -> list[StyledText]:
        return [StyledText(_QUOTE_MARK, TextStyle.FAINT)] * self._quote_depth

    @property
    def _text_columns(self) -> int:
        return max(self.count_columns() - len(_QUOTE_MARK) * self._quote_depth, 1)

    def _print_line(self, parts: Sequence[StyledText]) -> None:
        line = (to_terminal(text, style, has_colors=self.has_colors) for text, style in [*self._quote_marks, *parts])
        self._output.append("".join(line).rstrip(" ") + "\n")

    def _take_output(self) -> str:
        output, self._output = "".join(self._output), []
        return output


def _is_row(text: str) -> bool:
    return text.lstrip().startswith("|")


def _split_quote(line: str) -> tuple[int, str]:
    """Return how many quote marks begin a line, and the line without them."""
    depth = 0
    while match := _QUOTE.match(line):
        depth, line = depth + 1, line[match.end() :]
    return depth, line
