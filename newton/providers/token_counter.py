"""Count tokens offline with the encoding that ships with Newton."""

import functools
import re
from collections.abc import Iterable, Iterator

import tiktoken

from newton.settings import quieten_libraries

ENCODING = "cl100k_base"

# Within about a million characters of white space the splitter overflows its stack, except at the end of the text.
# (\x1c to \x1f are white space to Python but not to the encoding.)
_WHITESPACE = r"[^\S\x1c-\x1f]"
_LONG_WHITESPACE = re.compile(rf"(?<!{_WHITESPACE}){_WHITESPACE}{{100000,}}")


def count(text: str) -> int:
    """Return the exact token count; special tokens such as <|endoftext|> count as the plain text they are.

    Takes any text: a lone surrogate counts as the replacement character. A million letters without a space take
    about half a second.
    """
    return sum(len(_encoding().encode_ordinary(part)) for part in _split_long_blanks(text))


def count_many(texts: Iterable[str]) -> list[int]:
    """Return the count of each text, in order."""
    return [count(text) for text in texts]


def is_additive(line: str) -> bool:
    r"""Return True when the count of this line may be added to the counts of its neighbours.

    count(a + b) == count(a) + count(b) whenever a ends in "\n" and b begins with a character that is not white space:
    the encoding splits a text into words before it counts them, and no word reaches from a line end into anything but
    white space. It does not matter how many line ends a has, nor what else begins b: "-", "#", "[", "/", letters,
    digits, marks and emoji are all safe. (Of "/" that is true of this encoding; o200k_base joins it to the line end.)

    >>> is_additive("- a\n"), is_additive("\n"), is_additive(" - a\n"), is_additive("- a")
    (True, False, False, False)
    """
    return line.endswith("\n") and not line[0].isspace()


def truncate(text: str, *, max_tokens: int) -> str:
    """Return the text truncated to so many tokens; a character cut in two becomes the replacement character."""
    pieces = [token for part in _split_long_blanks(text) for token in _encoding().encode_ordinary(part)]
    return text if len(pieces) <= max_tokens else _encoding().decode(pieces[:max_tokens])


def preload() -> None:
    """Load the encoding's tables (about 0.25 s) ahead of the first count."""
    _encoding()


@functools.cache
def _encoding() -> tiktoken.Encoding:
    quieten_libraries()
    return tiktoken.get_encoding(f"{ENCODING}_offline")


def _split_long_blanks(text: str) -> Iterator[str]:
    """Yield the text split inside overlong white space, where the encoding also splits, so counts are unchanged.

    The encoding takes such a run up to its last line end as one word, and then all but the last character.
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
