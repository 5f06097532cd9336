"""Text that is wrapped while it is received, exactly as it is but for the line breaks."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from newton.runtime.cli.markdown.inline_text import WORD_BREAK
from newton.runtime.cli.markdown.line_wrapper import LineWrapper
from newton.runtime.cli.markdown.text_styles import StyledText

# the spaces and the mark of an item at the beginning of a line; the lines on which it is continued are indented
_START = re.compile(r"[ \t]*(?:(?:[-*+•>]|\d{1,9}[.)])[ \t]+)?(?=\S)")
_ONLY_START = re.compile(r"[ \t]*(?:(?:[-*+•>]|\d{1,9}[.)])[ \t]*)?")


@dataclass(slots=True, kw_only=True)
class WrappedStream:
    """Wraps plain text for a terminal as it is received, word by word. It has the methods of `MarkdownStream`."""

    count_columns: Callable[[], int]
    held_rows: int = 0
    _wrapper: LineWrapper = field(init=False)
    _buffer: str = ""
    _is_open: bool = False  # whether the line has begun

    def __post_init__(self) -> None:
        self._wrapper = LineWrapper(count_columns=self.count_columns, has_colors=False)

    def add(self, text: str) -> str:
        """Add a part of the text, and return the output for the terminal."""
        *lines, rest = (self._buffer + text).split("\n")
        output = "".join(self._render(line) + self._end_line() for line in lines)
        complete = rest[: max((match.end() for match in WORD_BREAK.finditer(rest)), default=0)]
        if not self._is_open and _ONLY_START.fullmatch(complete):
            complete = ""
        self._buffer = rest[len(complete) :]
        return output + self._render(complete)

    def release(self) -> str:
        """Render what is held back, and return the output. The text may go on, on the same line."""
        text, self._buffer = self._buffer, ""
        return self._render(text)

    def finish(self) -> str:
        """Render the rest, end the line, and return the output."""
        output = self.release() + self._wrapper.end_line()
        self._is_open = False
        return output

    def begin_new_line(self) -> None:
        """Note that the line was ended, because something else was printed after `release`."""
        self._wrapper.end_line()

    def _end_line(self) -> str:
        self._is_open = False
        return self._wrapper.end_line() or "\n"

    def _render(self, text: str) -> str:
        match = _START.match(text)
        if self._is_open or match is None:  # no word begins the line
            return self._wrapper.add([StyledText(text)]) if self._is_open else ""
        self._is_open = True
        start = match[0].expandtabs(4)
        begun = self._wrapper.begin_line([StyledText(start)], [StyledText(" " * len(start))])
        return begun + self._wrapper.add([StyledText(text[match.end() :])])
