"""The short forms of a memory, made once, when it is written. Pure: the token counter is passed in."""

import re
from collections.abc import Iterator

from newton.memory.memory import ShortForms, TokenCounter

MICRO_TOKENS = 24
SUMMARY_TOKENS = 110
ELLIPSIS = " …"

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=\S)")


def to_bullet(line: str) -> str:
    """A form as a context shows it."""
    return f"- {line}\n"


def one_line(text: str) -> str:
    """The text with all white space folded: no memory can start a line, or a section, of its own."""
    return " ".join(text.split())


def date_prefix(day: str) -> str:
    """How a form begins that says its day."""
    return f"[{day}] "


DATE_PREFIX_LENGTH = len(date_prefix("2000-01-01"))


def split_date_prefix(text: str) -> tuple[str | None, str]:
    """The day that a form says in front, if it does, and the rest of it.

    >>> split_date_prefix("[2026-11-20] Ana: We met."), split_date_prefix("[20 November] Ana"), split_date_prefix("We met.")
    (('2026-11-20', 'Ana: We met.'), (None, '[20 November] Ana'), (None, 'We met.'))
    """
    # hundreds are parted for a context, and a regular expression takes three times as long
    if text[:1] != "[" or text[11:13] != "] " or not text[DATE_PREFIX_LENGTH : DATE_PREFIX_LENGTH + 1].strip():
        return None, text
    day = text[1:11]
    digits = day[:4] + day[5:7] + day[8:]
    return (
        (day, text[DATE_PREFIX_LENGTH:])
        if day[4] == day[7] == "-" and digits.isascii() and digits.isdigit()
        else (None, text)
    )


def make_short_forms(
    text: str, *, count_tokens: TokenCounter, prefix: str = "", max_tokens: int = SUMMARY_TOKENS
) -> ShortForms:
    """Micro and summary of `text`; each starts with `prefix` (who, when), which is never cut away.

    `most` is what the summary may cost.
    """
    line = one_line(text)
    summary, summary_tokens = _fit_to_limit(line, limit=max_tokens, count_tokens=count_tokens, prefix=prefix)
    if summary_tokens <= MICRO_TOKENS:
        return ShortForms(micro=summary, summary=summary, micro_tokens=summary_tokens, summary_tokens=summary_tokens)
    micro, micro_tokens = _fit_to_limit(line, limit=MICRO_TOKENS, count_tokens=count_tokens, prefix=prefix)
    return ShortForms(micro=micro, summary=summary, micro_tokens=micro_tokens, summary_tokens=summary_tokens)


def _fit_to_limit(line: str, *, limit: int, count_tokens: TokenCounter, prefix: str) -> tuple[str, int]:
    """The longest shortening of `line` within `limit` tokens that the tries below come upon."""
    shown, tokens = prefix + line, limit + 1
    for tried in _iter_shortenings(line, limit=limit):
        shown = prefix + tried
        tokens = count_tokens(to_bullet(shown))
        if tokens <= limit:
            break
    return shown, tokens


def _iter_shortenings(line: str, *, limit: int) -> Iterator[str]:
    """The line, then ever shorter beginnings of it: whole sentences first, whole words then, at last single letters.

    Always ends with a try of at most one letter, so that a limit is only passed by a prefix that passes it alone.
    """
    if len(line) <= limit * 8:
        yield line
    # No English text holds more than about eight characters a token, so nothing longer is worth a count.
    room = min(len(line), limit * 6)
    while room > 1:
        yield _truncate(line, room)
        room = room * 4 // 5
    yield line[:1]


def _truncate(line: str, max_chars: int) -> str:
    """At most `room` characters of the line, ended at a sentence if one ends in the last half, else at a word."""
    head = line[:max_chars]
    ends = [match.start() for match in _SENTENCE_END.finditer(line[: max_chars + 2]) if match.start() <= max_chars]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]]
    cut = head.rfind(" ")
    return (head[:cut] if cut >= max_chars // 2 else head).rstrip(" ,;:-") + ELLIPSIS
