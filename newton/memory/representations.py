"""The short forms of a memory, made once, when it is written. Pure: the token counter is passed in."""

import re
from collections.abc import Iterator

from newton.memory.memory import Count, Forms

MICRO_TOKENS = 24
SUMMARY_TOKENS = 110
ELLIPSIS = " …"

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+(?=\S)")


def bullet(line: str) -> str:
    """A form as a context shows it."""
    return f"- {line}\n"


def one_line(text: str) -> str:
    """The text with all white space folded: no memory can start a line, or a section, of its own."""
    return " ".join(text.split())


def day_in_front(day: str) -> str:
    """How a form begins that says its day."""
    return f"[{day}] "


IN_FRONT = len(day_in_front("2000-01-01"))


def parted(form: str) -> tuple[str | None, str]:
    """The day that a form says in front, if it does, and the rest of it.

    >>> parted("[2026-11-20] Ana: We met."), parted("[20 November] Ana"), parted("We met.")
    (('2026-11-20', 'Ana: We met.'), (None, '[20 November] Ana'), (None, 'We met.'))
    """
    # hundreds are parted for a context, and a regular expression takes three times as long
    if form[:1] != "[" or form[11:13] != "] " or not form[IN_FRONT : IN_FRONT + 1].strip():
        return None, form
    day = form[1:11]
    digits = day[:4] + day[5:7] + day[8:]
    return (day, form[IN_FRONT:]) if day[4] == day[7] == "-" and digits.isascii() and digits.isdigit() else (None, form)


def forms(text: str, *, count: Count, prefix: str = "", most: int = SUMMARY_TOKENS) -> Forms:
    """Micro and summary of `text`; each starts with `prefix` (who, when), which is never cut away.

    `most` is what the summary may cost.
    """
    line = one_line(text)
    summary, summary_tokens = _fitted(line, limit=most, count=count, prefix=prefix)
    if summary_tokens <= MICRO_TOKENS:
        return Forms(micro=summary, summary=summary, micro_tokens=summary_tokens, summary_tokens=summary_tokens)
    micro, micro_tokens = _fitted(line, limit=MICRO_TOKENS, count=count, prefix=prefix)
    return Forms(micro=micro, summary=summary, micro_tokens=micro_tokens, summary_tokens=summary_tokens)


def _fitted(line: str, *, limit: int, count: Count, prefix: str) -> tuple[str, int]:
    """The longest shortening of `line` within `limit` tokens that the tries below come upon."""
    shown, tokens = prefix + line, limit + 1
    for tried in _shorter(line, limit=limit):
        shown = prefix + tried
        tokens = count(bullet(shown))
        if tokens <= limit:
            break
    return shown, tokens


def _shorter(line: str, *, limit: int) -> Iterator[str]:
    """The line, then ever shorter beginnings of it: whole sentences first, whole words then, at last single letters.

    Always ends with a try of at most one letter, so that a limit is only passed by a prefix that passes it alone.
    """
    if len(line) <= limit * 8:
        yield line
    # No English text holds more than about eight characters a token, so nothing longer is worth a count.
    room = min(len(line), limit * 6)
    while room > 1:
        yield _beginning(line, room)
        room = room * 4 // 5
    yield line[:1]


def _beginning(line: str, room: int) -> str:
    """At most `room` characters of the line, ended at a sentence if one ends in the last half, else at a word."""
    head = line[:room]
    ends = [match.start() for match in _SENTENCE_END.finditer(line[: room + 2]) if match.start() <= room]
    if ends and ends[-1] >= room // 2:
        return head[: ends[-1]]
    cut = head.rfind(" ")
    return (head[:cut] if cut >= room // 2 else head).rstrip(" ,;:-") + ELLIPSIS
