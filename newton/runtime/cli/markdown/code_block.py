"""Fenced code of a reply: its frame in the terminal, and the colors of its lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from newton.runtime.cli.markdown.text_styles import StyledText, TextStyle

if TYPE_CHECKING:
    from pygments.lexer import Lexer

FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
MAX_RULE_COLUMNS = 60
CONTEXT_LINES = 100  # earlier lines that are read again for the colors of a line, such as the begin of a long text

# styles by the first parts of the names of the tokens of Pygments
_TOKEN_STYLES: Mapping[tuple[str, ...], TextStyle] = {
    ("Comment",): TextStyle.FAINT,
    ("Keyword",): TextStyle.KEYWORD,
    ("Operator", "Word"): TextStyle.KEYWORD,
    ("Name", "Function"): TextStyle.NAME,
    ("Name", "Class"): TextStyle.NAME,
    ("Name", "Tag"): TextStyle.NAME,
    ("Name", "Decorator"): TextStyle.NAME,
    ("Name", "Builtin"): TextStyle.CODE,
    ("Literal", "String"): TextStyle.STRING,
    ("Literal", "Number"): TextStyle.NUMBER,
    ("Generic", "Inserted"): TextStyle.STRING,
    ("Generic", "Deleted"): TextStyle.NUMBER,
}


@dataclass(slots=True, kw_only=True)
class CodeBlock:
    """An open code block: the fence that closes it, its language, and its lines so far."""

    fence: str
    language: str
    has_colors: bool
    _lexer: "Lexer | None" = None
    _earlier: list[str] = field(default_factory=list[str])

    def is_closed_by(self, line: str) -> bool:
        """Return whether a line is the fence that ends the block."""
        text = line.strip()
        return text.startswith(self.fence) and not text.strip(self.fence[0])

    def render_rule(self, columns: int, label: str = "") -> StyledText:
        """Return the line above or below the code."""
        width = min(columns, MAX_RULE_COLUMNS)
        start = f"── {label} " if label and len(label) + 5 < width else ""
        return StyledText(start + "─" * (width - len(start)), TextStyle.FAINT)

    def render_line(self, line: str) -> Sequence[StyledText]:
        """Return a line of the code in its colors, if the language is known."""
        if self._lexer is None and self.has_colors and self.language:
            self._lexer, self.language = _find_lexer(self.language), ""
        if self._lexer is None:
            return [StyledText(line)]
        lines = [*self._earlier, line]
        self._earlier = lines[-CONTEXT_LINES:]
        return list(_color_last_line(self._lexer, lines))


def _find_lexer(language: str) -> "Lexer | None":
    """Return the lexer of a language. Pygments is imported here, because it takes a tenth of a second."""
    from pygments import lexers  # noqa: PLC0415 (slow)
    from pygments.util import ClassNotFound  # noqa: PLC0415 (slow)

    try:
        return cast("Any", lexers).get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _color_last_line(lexer: "Lexer", lines: Sequence[str]) -> Iterator[StyledText]:
    skipped = sum(len(line) + 1 for line in lines[:-1])
    for token, value in lexer.get_tokens("\n".join(lines)):
        text = value[skipped:] if skipped < len(value) else ""
        skipped = max(skipped - len(value), 0)
        if text := text.rstrip("\n"):
            yield StyledText(text, _find_style(tuple(token)))


def _find_style(names: Sequence[str]) -> TextStyle:
    return next((style for start, style in _TOKEN_STYLES.items() if names[: len(start)] == start), TextStyle.PLAIN)
