"""The short forms of a memory, computed when it is stored. Pure."""

import re
from collections.abc import Iterator

from newton.memory.memory import ShortForms, TokenCounter

MICRO_TOKENS = 24
SUMMARY_TOKENS = 110
ELLIPSIS = " …"

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=\S)")


def to_bullet(line: str) -> str:
    """Render a short form as a line of a context."""
    return f"- {line}\n"


def one_line(text: str) -> str:
    """Collapse all white space, so that no memory can start a line or a section of its own."""
    return " ".join(text.split())


def date_prefix(day: str) -> str:
    """Return the prefix of a short form that shows its date."""
    return f"[{day}] "


DATE_PREFIX_LENGTH = len(date_prefix("2000-01-01"))


def split_date_prefix(text: str) -> tuple[str | None, str]:
    """Split a short form into its date, if it has one, and the rest.

    >>> split_date_prefix("[2026-11-20] Ana: We met."), split_date_prefix("[20 November] Ana")
    (('2026-11-20', 'Ana: We met.'), (None, '[20 November] Ana'))
    """
    # called hundreds of times for a context; a regular expression takes three times as long
    if text[:1] != "[" or text[11:13] != "] " or not text[DATE_PREFIX_LENGTH : DATE_PREFIX_LENGTH + 1].strip():
        return None, text
    day = text[1:11]
    digits = day[:4] + day[5:7] + day[8:]
    is_date = day[4] == day[7] == "-" and digits.isascii() and digits.isdigit()
    return (day, text[DATE_PREFIX_LENGTH:]) if is_date else (None, text)


def make_short_forms(
    text: str, *, count_tokens: TokenCounter, prefix: str = "", max_tokens: int = SUMMARY_TOKENS
) -> ShortForms:
    """Return micro and summary of `text`, the latter within `max_tokens`; both begin with `prefix`, never truncated."""
    line = one_line(text)
    summary, summary_tokens = _fit_to_limit(line, limit=max_tokens, count_tokens=count_tokens, prefix=prefix)
    if summary_tokens <= MICRO_TOKENS:
        return ShortForms(summary, summary, summary_tokens, summary_tokens)
    micro, micro_tokens = _fit_to_limit(line, limit=MICRO_TOKENS, count_tokens=count_tokens, prefix=prefix)
    return ShortForms(micro, summary, micro_tokens, summary_tokens)


def _fit_to_limit(line: str, *, limit: int, count_tokens: TokenCounter, prefix: str) -> tuple[str, int]:
    """Return the first shortening of `line` within `limit` tokens, and its number of tokens."""
    text, tokens = prefix + line, limit + 1
    for shortening in _iter_shortenings(line, limit=limit):
        text = prefix + shortening
        tokens = count_tokens(to_bullet(text))
        if tokens <= limit:
            break
    return text, tokens


def _iter_shortenings(line: str, *, limit: int) -> Iterator[str]:
    """Yield the line, then ever shorter beginnings of it, cut after sentences, words or characters.

    The last one has at most one character, so that only a prefix can exceed the limit."""
    if len(line) <= limit * 8:
        yield line
    # English text has at most about eight characters per token, so longer beginnings are not counted.
    room = min(len(line), limit * 6)
    while room > 1:
        yield _truncate(line, room)
        room = room * 4 // 5
    yield line[:1]


def _truncate(line: str, max_chars: int) -> str:
    """Truncate after a sentence that ends in the second half of `max_chars`, otherwise after a word."""
    head = line[:max_chars]
    ends = [match.start() for match in _SENTENCE_END.finditer(line[: max_chars + 2]) if match.start() <= max_chars]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]]
    cut = head.rfind(" ")
    return (head[:cut] if cut >= max_chars // 2 else head).rstrip(" ,;:-") + ELLIPSIS
