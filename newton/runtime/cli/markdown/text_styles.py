"""Styles of text in a terminal, and the escape sequences that select them."""

from collections.abc import Mapping
from enum import Flag, auto
from typing import NamedTuple

from newton.runtime.cli.printing import visible

RESET = "\x1b[0m"


class TextStyle(Flag):
    """A combination of styles."""

    PLAIN = 0
    BOLD = auto()
    FAINT = auto()
    ITALIC = auto()
    UNDERLINED = auto()
    STRUCK = auto()
    CODE = auto()
    KEYWORD = auto()
    NAME = auto()
    STRING = auto()
    NUMBER = auto()


class StyledText(NamedTuple):
    """A text without line breaks, in one style."""

    text: str
    style: TextStyle = TextStyle.PLAIN


# parameters of the sequence "select graphic rendition" (ECMA-48)
_ATTRIBUTES: Mapping[TextStyle, str] = {
    TextStyle.BOLD: "1",
    TextStyle.FAINT: "2",
    TextStyle.ITALIC: "3",
    TextStyle.UNDERLINED: "4",
    TextStyle.STRUCK: "9",
}
_COLORS: Mapping[TextStyle, str] = {
    TextStyle.CODE: "36",
    TextStyle.KEYWORD: "35",
    TextStyle.NAME: "34",
    TextStyle.STRING: "32",
    TextStyle.NUMBER: "33",
}
# the same styles by their names in rich
RICH_STYLES: Mapping[TextStyle, str] = {
    TextStyle.BOLD: "bold",
    TextStyle.FAINT: "dim",
    TextStyle.ITALIC: "italic",
    TextStyle.UNDERLINED: "underline",
    TextStyle.STRUCK: "strike",
    TextStyle.CODE: "cyan",
}


def to_terminal(text: str, style: TextStyle, *, has_colors: bool) -> str:
    r"""Return a text with the sequences that begin and end its style. Control characters in the text are escaped.

    >>> to_terminal("a", TextStyle.BOLD | TextStyle.CODE, has_colors=True)
    '\x1b[1;36ma\x1b[0m'
    >>> to_terminal("a", TextStyle.CODE, has_colors=False)
    'a'
    """
    parameters = {**_ATTRIBUTES, **_COLORS} if has_colors else _ATTRIBUTES
    numbers = ";".join(number for one, number in parameters.items() if one in style)
    return f"\x1b[{numbers}m{visible(text)}{RESET}" if numbers and text else visible(text)
