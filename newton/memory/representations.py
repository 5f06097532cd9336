"""The short forms of a memory, which are computed when the memory is stored. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from newton.memory.memory import LongForms, ShortForms, TextWindow, TokenCounter
from newton.text.sentences import SENTENCE_END

MICRO_TOKENS = 24
SUMMARY_TOKENS = 110
WINDOW_TOKENS = 48  # of a window, without prefix; a short window is found and scored more precisely
MAX_WINDOWS = 64  # of one text; the windows of a longer text are larger
MAX_SENTENCE_CHARS = 240  # a longer sentence is divided between windows
ELLIPSIS = " …"


def to_bullet(line: str) -> str:
    """Return a line, such as a short form of a memory, as a bulleted line of a context."""
    return f"- {line}\n"


def one_line(text: str) -> str:
    """Return the text on one line with single spaces, so that a memory cannot begin a line or section of a context."""
    return " ".join(text.split())


def date_prefix(day: str) -> str:
    """Return a date in brackets, as the short forms of a message begin with it."""
    return f"[{day}] "


DATE_PREFIX_LENGTH = len(date_prefix("2000-01-01"))


def start_prefix(day: str) -> str:
    """Return the prefix of the short forms of a fact that is not valid before `day`."""
    return f"[from {day}] "


START_PREFIX_LENGTH = len(start_prefix("2000-01-01"))
_START_PREFIX = re.compile(r"\[from \d{4}-\d\d-\d\d\] (?=\S)")


def has_start_prefix(text: str) -> bool:
    """Return whether a short form begins with the prefix that `start_prefix` returns."""
    return _START_PREFIX.match(text) is not None


def split_date_prefix(text: str) -> tuple[str | None, str]:
    """Return the date with which a short form begins (None without a date), and the rest of the form.

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
    text: str,
    *,
    count_tokens: TokenCounter,
    prefix: str = "",
    max_tokens: int = SUMMARY_TOKENS,
    keep_end: bool = False,
) -> ShortForms:
    """Return the short forms of a text: micro (at most MICRO_TOKENS) and summary (at most `max_tokens`).

    Both begin with `prefix`, which is never truncated. A text that is too long loses its end, or with `keep_end` its
    middle.
    """
    line, shorten = one_line(text), _cut_middle if keep_end else _truncate

    def fit(limit: int) -> tuple[str, int]:
        shortenings = _iter_shortenings(line, limit=limit, shorten=shorten)
        return _find_fitting(shortenings, limit=limit, count_tokens=count_tokens, prefix=prefix)

    summary, summary_tokens = fit(max_tokens)
    if summary_tokens <= MICRO_TOKENS:
        return ShortForms(summary, summary, summary_tokens, summary_tokens)
    micro, micro_tokens = fit(MICRO_TOKENS)
    return ShortForms(micro, summary, micro_tokens, summary_tokens)


def make_long_forms(text: str, *, count_tokens: TokenCounter, prefix: str = "") -> LongForms | None:
    """Return the windows (groups of sentences) and the size of a text longer than a summary; None for a shorter one."""
    full_tokens = count_tokens(to_bullet(prefix + one_line(text)))
    if full_tokens <= SUMMARY_TOKENS:
        return None
    pieces = [piece for line in text.splitlines() for piece in _split_sentences(one_line(line))]
    sizes = [count_tokens(f" {piece}") for piece in pieces]
    # larger windows (the quotient is rounded up) for a text that would have more than MAX_WINDOWS
    groups = _group_pieces(pieces, sizes, max_tokens=max(WINDOW_TOKENS, -(-sum(sizes) // MAX_WINDOWS)))
    last = len(groups) - 1
    lines = [f"{'… ' * (n > 0)}{' '.join(group)}{ELLIPSIS * (n < last)}" for n, group in enumerate(groups)]
    windows = tuple(TextWindow(line, count_tokens(to_bullet(prefix + line))) for line in lines)
    return LongForms(len(prefix), full_tokens, windows)


def _split_sentences(line: str) -> Iterator[str]:
    for sentence in filter(None, SENTENCE_END.split(line)):
        start = 0
        while len(sentence) - start > MAX_SENTENCE_CHARS:
            cut = sentence.rfind(" ", start + 1, start + MAX_SENTENCE_CHARS)
            end = cut if cut > 0 else start + MAX_SENTENCE_CHARS
            yield sentence[start:end]
            start = end + (cut > 0)
        yield sentence[start:]


def _group_pieces(pieces: Sequence[str], sizes: Sequence[int], *, max_tokens: int) -> list[list[str]]:
    """Group consecutive pieces into windows of at most `max_tokens`, or of a single larger piece."""
    groups, used = list[list[str]](), max_tokens
    for piece, size in zip(pieces, sizes, strict=True):
        if not groups or used + size > max_tokens:
            groups.append([])
            used = 0
        groups[-1].append(piece)
        used += size
    return groups


def _find_fitting(
    shortenings: Iterable[str], *, limit: int, count_tokens: TokenCounter, prefix: str
) -> tuple[str, int]:
    """Return the first shortening that with `prefix` has at most `limit` tokens, and its number of tokens.

    If none does, return the last shortening.
    """
    text, tokens = prefix, limit + 1
    for shortening in shortenings:
        text = prefix + shortening
        tokens = count_tokens(to_bullet(text))
        if tokens <= limit:
            break
    return text, tokens


def _iter_shortenings(line: str, *, limit: int, shorten: Callable[[str, int], str]) -> Iterator[str]:
    """Yield the line, then shorter and shorter forms of it.

    The last one has at most one character, so that only a prefix can exceed the limit.
    """
    if len(line) <= limit * 8:
        yield line
    # English text has at most about eight characters per token, so longer forms are not counted.
    room = min(len(line), limit * 6)
    while room > 1:
        yield shorten(line, room)
        room = room * 4 // 5
    yield line[:1]


def _truncate(line: str, max_chars: int) -> str:
    """Cut the line after a sentence that ends in the second half of `max_chars`, otherwise after a word."""
    head = line[:max_chars]
    ends = [match.start() for match in SENTENCE_END.finditer(line[: max_chars + 2]) if match.start() <= max_chars]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]]
    cut = head.rfind(" ")
    return (head[:cut] if cut >= max_chars // 2 else head).rstrip(" ,;:-") + ELLIPSIS


def _cut_middle(line: str, max_chars: int) -> str:
    """Return the line without its middle, for which an ellipsis stands. The end is a third of `max_chars` long."""
    tail_chars = max_chars // 3
    head, tail = _truncate(line, max_chars - tail_chars).removesuffix(ELLIPSIS), line[len(line) - tail_chars :]
    sentence, cut = SENTENCE_END.search(tail), tail.find(" ")
    if sentence and sentence.end() <= tail_chars // 2:
        cut = sentence.end() - 1
    if not 0 <= cut <= tail_chars // 2:  # the word at the cut is long: it is shown whole if it is not very long
        start = line.rfind(" ", len(head) + 1, len(line) - tail_chars) + 1
        tail, cut = (line[start:] if start > 0 and len(line) - start <= 2 * tail_chars else tail), -1
    return f"{head}{ELLIPSIS} {tail[cut + 1 :]}".rstrip()
