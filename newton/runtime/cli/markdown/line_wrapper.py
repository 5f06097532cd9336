"""Lines of a terminal: words are appended, and a line is broken before a word that does not fit."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from prompt_toolkit.utils import get_cwidth

from newton.runtime.cli.markdown.inline_text import WORD_BREAK
from newton.runtime.cli.markdown.text_styles import StyledText, to_terminal

MIN_TEXT_COLUMNS = 20  # beside an indentation; a deeper indentation is cut


@dataclass(slots=True, kw_only=True)
class LineWrapper:
    """Appends words to the current line of a terminal and counts its columns. Nothing that was written is changed.

    `count_columns` returns the width of the terminal, which may change. A word that is longer than a line is left to
    the terminal, so that a long address can be copied.
    """

    count_columns: Callable[[], int]
    has_colors: bool
    column: int = 0
    _indent: list[StyledText] = field(default_factory=list[StyledText])
    _space: list[StyledText] = field(default_factory=list[StyledText])  # before the next word, if it fits

    def begin_line(self, start: Iterable[StyledText], indent: Iterable[StyledText]) -> str:
        """Begin a line with `start`; the lines on which it is continued begin with `indent`. Return the output."""
        self._indent, self._space = list(_cut_indent(indent, self.count_columns())), []
        start = list(_cut_indent(start, self.count_columns()))
        self.column = _count_columns(start)
        return self._render(start)

    def add(self, parts: Iterable[StyledText]) -> str:
        """Append complete words and spaces. Return the output."""
        output: list[str] = []
        word: list[StyledText] = []
        for part, is_break in _split_words(parts):
            if is_break:
                output.append(self._place(word))
                word, self._space = [], [*self._space, part._replace(text=part.text.replace("\t", "    "))]
            else:
                word.append(part)
        return "".join([*output, self._place(word)])

    def end_line(self) -> str:
        """End the line, if there is one. Return the output."""
        ended, self.column, self._space = self.column > 0, 0, []
        return "\n" if ended else ""

    def _place(self, word: list[StyledText]) -> str:
        if not word:
            return ""
        width, indent_width, space_width = (_count_columns(parts) for parts in (word, self._indent, self._space))
        if self.column + space_width + width <= self.count_columns() or self.column <= indent_width:
            output, self.column = self._render(self._space), self.column + space_width + width
        else:
            output, self.column = "\n" + self._render(self._indent), indent_width + width
        self._space = []
        return output + self._render(word)

    def _render(self, parts: Iterable[StyledText]) -> str:
        return "".join(to_terminal(text, style, has_colors=self.has_colors) for text, style in parts)


def _count_columns(parts: Iterable[StyledText]) -> int:
    return sum(get_cwidth(part.text) for part in parts)


def _split_words(parts: Iterable[StyledText]) -> Iterator[tuple[StyledText, bool]]:
    """Yield the pieces of words, and, with True, what separates words: a space or an empty text."""
    for text, style in parts:
        place = 0
        for match in WORD_BREAK.finditer(text):
            if match.start() > place:
                yield StyledText(text[place : match.start()], style), False
            yield StyledText(match[0], style), True
            place = match.end()
        if place < len(text):
            yield StyledText(text[place:], style), False


def _cut_indent(parts: Iterable[StyledText], columns: int) -> Iterator[StyledText]:
    """Yield the parts of an indentation as far as they leave some columns for text."""
    left = max(columns - MIN_TEXT_COLUMNS, 0)
    for text, style in parts:
        kept = text[:left] if text.isspace() else text
        left = max(left - len(kept), 0)
        yield StyledText(kept, style)
