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
_LEFT_OUT = "\n…"  # where lines were left out
_FURTHER_LINE = re.compile(r"\n(?=[^\n])")
_PIECE_END = re.compile(r"\n+|(?<=[.!?…。！？])[^\S\n]+(?=\S)")


INDENT = "  "  # of the further lines of an item, as in Markdown


def to_bullet(text: str) -> str:
    """Return a text, such as a short form of a memory, as an item of a context."""
    return f"- {indent_lines(text)}\n"


def indent_lines(text: str, indent: str = INDENT) -> str:
    """Return a text that `keep_lines` returned with its further lines indented.

    They are those of the item, and no memory can begin a line or a section of a context.

    >>> indent_lines("services:\\n  web: 1\\n\\n## Identity")
    'services:\\n    web: 1\\n\\n  ## Identity'
    """
    return _FURTHER_LINE.sub(f"\n{indent}", text) if "\n" in text else text


def one_line(text: str) -> str:
    """Return the text on one line with single spaces."""
    return " ".join(text.split())


def keep_lines(text: str) -> str:
    """Return the text with its lines and their indentation; a text of one line with single spaces.

    Each kind of line break becomes a newline, and blank lines around the text are left out.

    >>> keep_lines("\\r\\nweb:\\r\\n  port:  80\\n"), keep_lines(" One   line.\\n")
    ('web:\\n  port:  80', 'One line.')
    """
    if text.isprintable():  # it has no line break
        return one_line(text)
    lines = text.splitlines()
    shown = [number for number, line in enumerate(lines) if line.strip()]
    return one_line(text) if len(shown) < 2 else "\n".join(lines[shown[0] : shown[-1] + 1])


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
    whole, shorten = keep_lines(text), _cut_middle if keep_end else _truncate

    def fit(limit: int) -> tuple[str, int]:
        shortenings = _iter_shortenings(whole, limit=limit, shorten=shorten)
        return _find_fitting(shortenings, limit=limit, count_tokens=count_tokens, prefix=prefix)

    summary, summary_tokens = fit(max_tokens)
    if summary_tokens <= MICRO_TOKENS:
        return ShortForms(summary, summary, summary_tokens, summary_tokens)
    micro, micro_tokens = fit(MICRO_TOKENS)
    return ShortForms(micro, summary, micro_tokens, summary_tokens)


def make_long_forms(text: str, *, count_tokens: TokenCounter, prefix: str = "", title: str = "") -> LongForms | None:
    """Return the windows (groups of sentences or lines) and the size of a text that is longer than a summary.

    Return None for a shorter one. Each window begins with the `title`.
    """
    whole = keep_lines(text)
    full_tokens = count_tokens(to_bullet(prefix + whole))
    if full_tokens <= SUMMARY_TOKENS:
        return None
    pieces = list(_find_pieces(whole))
    sizes = [count_tokens(f" {whole[start:end]}") for start, end in pieces]
    # larger windows (the quotient is rounded up) for a text that would have more than MAX_WINDOWS
    groups = _group_pieces(pieces, sizes, max_tokens=max(WINDOW_TOKENS, -(-sum(sizes) // MAX_WINDOWS)))
    lines = [title + _cut_out(whole, group[0][0], group[-1][1]) for group in groups]
    windows = tuple(TextWindow(line, count_tokens(to_bullet(prefix + line))) for line in lines)
    return LongForms(len(prefix), full_tokens, windows)


def _find_pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence or line of a text begins and ends; a long one is divided."""
    ends = [*((one.start(), one.end()) for one in _PIECE_END.finditer(text)), (len(text), len(text))]
    for start, (end, _) in zip([0, *(after for _, after in ends)], ends, strict=False):
        begin = start
        while end - begin > MAX_SENTENCE_CHARS:
            cut = text.rfind(" ", begin + 1, begin + MAX_SENTENCE_CHARS)
            stop = cut if cut > 0 else begin + MAX_SENTENCE_CHARS
            yield begin, stop
            begin = stop + (cut > 0)
        yield begin, end


def _cut_out(text: str, start: int, end: int) -> str:
    """Return a part of a text, with an ellipsis where something is left out; for whole lines it is a line too."""
    before = "" if start == 0 else "…\n" if text[start - 1] == "\n" else "… "
    after = "" if end == len(text) else _LEFT_OUT if text[end] == "\n" else ELLIPSIS
    return f"{before}{text[start:end]}{after}"


def _group_pieces(
    pieces: Sequence[tuple[int, int]], sizes: Sequence[int], *, max_tokens: int
) -> list[list[tuple[int, int]]]:
    """Group consecutive pieces into windows of at most `max_tokens`, or of a single larger piece."""
    groups, used = list[list[tuple[int, int]]](), max_tokens
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


def _iter_shortenings(text: str, *, limit: int, shorten: Callable[[str, int], str]) -> Iterator[str]:
    """Yield the text, then shorter and shorter forms of it.

    The last one has at most one character, so that only a prefix can exceed the limit.
    """
    if len(text) <= limit * 8:
        yield text
    # English text has at most about eight characters per token, so longer forms are not counted.
    room = min(len(text), limit * 6)
    while room > 1:
        yield shorten(text, room)
        room = room * 4 // 5
    yield text[:1]


def _truncate(text: str, max_chars: int) -> str:
    """Cut the text after a line, after a sentence that ends in the second half of `max_chars`, or after a word."""
    head = text[:max_chars]
    if (end := head.rfind("\n")) >= max_chars // 4:
        return head[:end].rstrip() + _LEFT_OUT
    ends = [match.start() for match in SENTENCE_END.finditer(text[: max_chars + 2]) if match.start() <= max_chars]
    if ends and ends[-1] >= max_chars // 2:
        return head[: ends[-1]]
    cut = head.rfind(" ")
    return (head[:cut] if cut >= max_chars // 2 else head).rstrip(" ,;:-\n") + ELLIPSIS


def _cut_middle(text: str, max_chars: int) -> str:
    """Return the text without its middle, for which an ellipsis stands. The end is a third of `max_chars` long."""
    tail_chars = max_chars // 3
    head = _truncate(text, max_chars - tail_chars).removesuffix(_LEFT_OUT).removesuffix(ELLIPSIS)
    begin = text.find("\n", len(text) - tail_chars) + 1
    if begin == 0:  # the last line is shown whole if it is not very long
        last = text.rfind("\n") + 1
        begin = last if last >= max(len(text) - 2 * tail_chars, len(head)) else 0
    if begin:
        return f"{head}{_LEFT_OUT}\n{text[begin:]}"
    tail = text[len(text) - tail_chars :]
    sentence, cut = SENTENCE_END.search(tail), tail.find(" ")
    if sentence and sentence.end() <= tail_chars // 2:
        cut = sentence.end() - 1
    if not 0 <= cut <= tail_chars // 2:  # the word at the cut is long: it is shown whole if it is not very long
        start = text.rfind(" ", len(head) + 1, len(text) - tail_chars) + 1
        tail, cut = (text[start:] if start > 0 and len(text) - start <= 2 * tail_chars else tail), -1
    return f"{head}{ELLIPSIS} {tail[cut + 1 :]}".rstrip()
