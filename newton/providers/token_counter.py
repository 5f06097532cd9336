"""Offline token counting with the encoding that ships with Newton (cl100k_base)."""

import functools
import re
from collections.abc import Iterator

import tiktoken

from newton.environment import quieten_libraries

ENCODING = "cl100k_base"

# The encoding overflows its stack in about a million characters of white space, except at the end of the text.
# The characters \x1c to \x1f are white space to Python but not to the encoding.
_WHITESPACE = r"[^\S\x1c-\x1f]"
_LONG_WHITESPACE = re.compile(rf"(?<!{_WHITESPACE}){_WHITESPACE}{{100000,}}")


def count(text: str) -> int:
    """Return the number of tokens of a text. Special tokens such as <|endoftext|> are counted as plain text.

    A lone surrogate counts as the replacement character. A million letters without a space take about half a second.
    """
    return sum(len(_encoding().encode_ordinary(part)) for part in _split_long_blanks(text))


def is_additive(line: str) -> bool:
    r"""Return True when the count of this line can be added to the counts of the lines around it.

    count(a + b) == count(a) + count(b) if a ends in "\n" and b begins with any character but white space: the encoding
    first splits a text into words, and no word continues after a line end except with white space. (With o200k_base,
    "/" at the beginning of b would join the line end.)

    >>> is_additive("- a\n"), is_additive("\n"), is_additive(" - a\n"), is_additive("- a")
    (True, False, False, False)
    """
    return line.endswith("\n") and not line[0].isspace()


def truncate(text: str, *, max_tokens: int) -> str:
    """Return at most the first `max_tokens` of the text. A character that is cut becomes the replacement character."""
    pieces = [token for part in _split_long_blanks(text) for token in _encoding().encode_ordinary(part)]
    return text if len(pieces) <= max_tokens else _encoding().decode(pieces[:max_tokens])


def preload() -> None:
    """Load the tables of the encoding (about 0.25 s) before the first count."""
    _encoding()


@functools.cache
def _encoding() -> tiktoken.Encoding:
    quieten_libraries()
    return tiktoken.get_encoding(f"{ENCODING}_offline")


def _split_long_blanks(text: str) -> Iterator[str]:
    """Yield the text in parts whose token counts add up, so that no part has a very long run of white space.

    The cuts are where the encoding itself splits: after the last line end of a run, and before its last character.
    """
    start = 0
    for run in _LONG_WHITESPACE.finditer(text):
        if run.end() == len(text):
            break
        line_end = max(text.rfind(mark, run.start(), run.end()) for mark in "\r\n") + 1
        for cut in (line_end, run.end() - 1):
            if cut > max(start, run.start()):
                yield text[start:cut]
                start = cut
    yield text[start:]
