"""Inline Markdown: emphasis, code and links within one line, of which only the beginning may be known yet."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from newton.runtime.cli.markdown.text_styles import StyledText, TextStyle
from newton.runtime.cli.printing import visible

MAX_OPEN_CHARS = 500  # an emphasis, code or link that is longer is shown as it is written
MAX_WORD_CHARS = 2_000  # a longer word is shown before it is complete

# Scripts without spaces, in which a line may end after each character, and the marks that do not begin a line.
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\U00020000-\U0003fffd"
)
_CLOSING = r"、。，．！？：；）」』】〉》〕々ーぁぃぅぇぉっゃゅょァィゥェォッャュョ,.!?:;)\]}*_~`\"'’”"
WORD_BREAK = re.compile(rf"[ \t]+|(?<=[{_WIDE}])(?=[^\s{_CLOSING}])|(?<=\S)(?=[{_WIDE}])(?=[^{_CLOSING}])")

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
_STYLES = {"strong": TextStyle.BOLD, "em": TextStyle.ITALIC, "s": TextStyle.STRUCK, "link": TextStyle.UNDERLINED}
_MARK = re.compile(r"\\.|`+|\*+|_+|~~+|\[|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"]*\"?)?\)?|\]", re.DOTALL)


def split_complete(text: str) -> tuple[str, str]:
    """Split a line of which more may follow at the end of the last word that no further text can change.

    >>> split_complete("a **bold wo")
    ('a ', '**bold wo')
    >>> split_complete("a **bold word** an"), split_complete("a **bold word**")
    (('a **bold word** ', 'an'), ('a ', '**bold word**'))
    """
    spans = [] if len(text) > MAX_OPEN_CHARS else _find_spans(text)
    breaks = (match.end() for match in WORD_BREAK.finditer(text))
    place = max((one for one in breaks if not any(first < one < end for first, end in spans)), default=0)
    return (text, "") if not place and len(text) > MAX_WORD_CHARS else (text[:place], text[place:])


def parse_inline(text: str, *, has_colors: bool) -> Iterator[StyledText]:
    """Yield the styled parts of a text without line breaks. Without colors, code keeps its marks.

    >>> [part.text for part in parse_inline("[a](http://b.c) and `d`", has_colors=False)]
    ['a', ' (http://b.c)', ' and ', '`d`']
    """
    for token in _PARSER.parseInline(text):
        for part, style in _render_tokens(token.children or (), has_colors=has_colors):
            yield StyledText(visible(part).replace("\n", " "), style)  # an entity can stand for a control character


def _render_tokens(tokens: Sequence[Token], *, has_colors: bool) -> Iterator[StyledText]:
    style, link_text, address = TextStyle.PLAIN, "", ""
    for token in tokens:
        name = token.type.removesuffix("_open").removesuffix("_close")
        if token.nesting == 1:
            style |= _STYLES.get(name, TextStyle.PLAIN)
            link_text, address = ("", str(token.attrGet("href"))) if name == "link" else (link_text, address)
        elif token.nesting == -1:
            style &= ~_STYLES.get(name, TextStyle.PLAIN)
            if name == "link" and address.removeprefix("mailto:") != link_text:
                yield StyledText(f" ({address})", TextStyle.FAINT)
        else:
            link_text += token.content
            is_code = token.type == "code_inline"
            yield StyledText(_render_leaf(token, has_colors=has_colors), style | TextStyle.CODE if is_code else style)


def _render_leaf(token: Token, *, has_colors: bool) -> str:
    if token.type == "image":
        return f"{token.content or 'image'} ({token.attrGet('src')})"
    if token.type == "code_inline" and not has_colors:
        return f"{token.markup}{token.content}{token.markup}"
    return token.content


def _find_spans(text: str) -> list[tuple[int, int]]:
    """Return where emphasis, code and links begin and end; those without an end reach beyond the end of the text."""
    spans: list[tuple[int, int]] = []
    open_marks: list[tuple[str, int]] = []
    place = 0
    while match := _MARK.search(text, place):
        place = match.end()
        first = open_marks[0][1] if open_marks else match.start()
        match match[0][0]:
            case "`":
                closing = re.compile(rf"(?<!`){match[0]}(?!`)").search(text, place)
                place = closing.end() if closing else len(text) + 1
                spans.append((match.start(), place))
            case "[":
                open_marks.append((match[0], match.start()))
            case "]":
                _close_bracket(match, open_marks)
            case "*" | "_" | "~":
                _match_emphasis(text, match, open_marks)
            case _:  # an escaped character
                continue
        if not open_marks:
            spans.append((first, place))
    return [*spans, *((first, len(text) + 1) for _, first in open_marks[:1])]


def _close_bracket(match: re.Match[str], open_marks: list[tuple[str, int]]) -> None:
    """Close the text of a link; an address that is not complete stays open."""
    places = [place for place, (mark, _) in enumerate(open_marks) if mark == "["]
    if places:
        first = open_marks[places[-1]][1]
        del open_marks[places[-1] :]
        if match[0] != "]" and not match[0].endswith(")"):
            open_marks.append((match[0], first))


def _match_emphasis(text: str, match: re.Match[str], open_marks: list[tuple[str, int]]) -> None:
    """Close what a run of marks ends, or else open the emphasis that it begins."""
    before, after = text[: match.start()][-1:] or " ", text[match.end() :][:1]
    left = 0 if before.isspace() else len(match[0])
    places = [place for place, (mark, _) in enumerate(open_marks) if mark[0] == match[0][0]]
    is_closed = False
    while places and len(open_marks[places[-1]][0]) <= left:
        left -= len(open_marks[places[-1]][0])
        del open_marks[places.pop() :]
        is_closed = True
    if not is_closed and not after.isspace() and not (match[0][0] == "_" and before.isalnum()):
        open_marks.append((match[0], match.start()))
