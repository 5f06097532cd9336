"""Detection of what a person asks not to keep in memory, such as "between us", in all served languages. Pure."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, Protocol

import yaml

from newton.heart.reconciliation.text_evidence import list_stems, share_stems

MAX_ANNOUNCEMENT = 5  # words beside the request in a line that only announces what follows, or refers to what precedes
MAX_CHARS = 2_000  # at the beginning of a line, and at its end, that are searched for a request
MIN_TOPIC_SHARE = 0.8  # of the words of a topic that a line about it has
MIN_LINE_SHARE = 0.65  # of the words of a line that a request repeats
_WORD = re.compile(r"[\u3040-\u9fff]{2}|[^\W\d_\u3040-\u9fff]+")
_ANAPHORA = re.compile(
    r"\b(?:that|it|of that|what i (?:just )?(?:said|told|mentioned|wrote)|i (?:\w+ )?(?:said|told|mentioned)|eso|das"
    r"|davon|was ich|cela|ça|quello|isso|dat|это|那)\b",
    re.IGNORECASE,
)
_TABLES = ("line", "next", "about", "matter")


class SpokenLine(Protocol):
    """A line of a conversation. `is_hidden` means that it is not kept in memory already."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def speaker(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def is_hidden(self) -> bool: ...


def find_off_record(lines: Sequence[SpokenLine]) -> set[int]:
    """Return the numbers of the lines that must not be kept in memory.

    These are the lines of persons with such a request, the next line of the speaker if the line only announces it, the
    one before if the line only refers to it (the next one, if there is none), and what the assistant replies to them.
    """
    numbers = {line.number for line in lines if line.is_hidden}
    for position, line in enumerate(lines):
        request = find_request(line.text) if line.source == "person" else None
        if request is None:
            continue
        numbers.add(line.number)
        if _says_little(line.text) and find_topic(line.text) is None:
            earlier, later = lines[:position][::-1], lines[position + 1 :]
            others = later if request == "next" else [*earlier, *later]
            own = (one for one in others if one.source == "person" and one.speaker == line.speaker)
            numbers |= {one.number for one in (next(own, None),) if one}
    is_hidden = False
    for line in lines:
        is_hidden = line.number in numbers if line.source == "person" else is_hidden
        numbers |= {line.number} if is_hidden and line.source == "assistant" else set()
    return numbers


def find_request(text: str) -> Literal["line", "next"] | None:
    """Return whether a text asks that it is not kept, or that what follows is not; None if it asks neither.

    >>> [find_request(text) for text in ("Between us: I have asthma.", "Don't store that.", "I don't store milk.")]
    ['next', 'line', None]
    """
    plain = _flatten(text)
    line, following, about, _ = _load_patterns()
    if found := _search(line, plain):
        refers_back = _ANAPHORA.search(plain, found.start()) is not None
        return "line" if refers_back and not plain.endswith(":") else "next"
    if _search(following, plain):
        return "next"
    return "line" if _search(about, plain) else None


def find_topic(text: str, previous: str = "") -> str | None:
    """Return what a request says that it is about, if that was said earlier; None if it says nothing of the kind.

    A request that only refers to a question before it is about what the question is.

    >>> find_topic("Forget what I said about the biopsy."), find_topic("Forget the bus.")
    ('the biopsy', None)
    """
    plain = _flatten(text)
    _, _, about, matter = _load_patterns()
    if found := _search(about, plain):
        return found[1]
    if find_request(text) is None:
        return None
    found = _search(matter, plain)
    if found is None and previous.rstrip().endswith("?") and _says_little(text):
        found = _search(matter, _flatten(previous))
    return found and found[1]


def is_about(text: str, topic: str, request: str = "") -> bool:
    """Return whether a line says what a topic names, or what a request repeats in other words."""
    stems, wanted = list_stems(text), list_stems(topic)
    if wanted and len(share_stems(wanted, stems)) / len(wanted) >= MIN_TOPIC_SHARE:
        return True
    return len(stems) > 1 and len(share_stems(stems, list_stems(request))) / len(stems) >= MIN_LINE_SHARE


def is_only_request(text: str) -> bool:
    """Return whether a line asks that something is not kept, and says little beside it."""
    return find_request(text) is not None and _says_little(text)


def _says_little(text: str) -> bool:
    plain = _flatten(text)
    for patterns in _load_patterns():
        for pattern in patterns:
            plain = pattern.sub(" ", plain)
    return plain.rstrip().endswith((":", "：")) or len(_WORD.findall(plain)) <= MAX_ANNOUNCEMENT


def _flatten(text: str) -> str:
    """Return the ends of a text as one line: a request is there, if at all."""
    ends = text if len(text) <= 2 * MAX_CHARS else f"{text[:MAX_CHARS]} {text[-MAX_CHARS:]}"
    return " ".join(ends.split()).replace("’", "'")


def _search(patterns: Sequence[re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.search(text) for pattern in patterns)), None)


@cache
def _load_patterns() -> tuple[tuple[re.Pattern[str], ...], ...]:
    text = files("newton.heart.reconciliation").joinpath("off_record.yaml").read_text(encoding="utf-8")
    tables = yaml.safe_load(text).values()
    return tuple(
        tuple(re.compile(one, re.IGNORECASE) for table in tables for one in table.get(name, ())) for name in _TABLES
    )
