"""Detection of lines that a person asks not to store, such as "between us", in all served languages. Pure."""

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from newton.heart.reconciliation.reconciling_types import NewLine

MAX_ANNOUNCEMENT = 5  # words beside the request in a line that only announces what follows
_WORD = re.compile(r"[\u3040-\u9fff]{2}|[^\W\d_\u3040-\u9fff]+")
_ANAPHORA = re.compile(r"\b(?:that|it|of that|eso|das|davon|cela|ça|quello|isso|dat|это|那)\b", re.IGNORECASE)


def find_off_record(lines: Sequence[NewLine]) -> set[int]:
    """Return the numbers of the lines that must not be stored.

    These are the lines of persons with such a request, and the next line of the speaker if the line only announces it.
    """
    numbers = set[int]()
    for position, line in enumerate(lines):
        request = find_request(line.text) if line.source == "person" else None
        if request is None:
            continue
        numbers.add(line.number)
        if request == "next" and _only_announces(line.text):
            following = (one for one in lines[position + 1 :] if one.source == "person" and one.speaker == line.speaker)
            numbers |= {one.number for one in (next(following, None),) if one}
    return numbers


def find_request(text: str) -> Literal["line", "next"] | None:
    """Return whether a text asks that it is not stored, or that what follows is not; None if it asks neither.

    >>> [find_request(text) for text in ("Between us: I have asthma.", "Don't store that.", "I don't store milk.")]
    ['next', 'line', None]
    """
    plain = " ".join(text.split()).replace("’", "'")
    line, following = _load_patterns()
    if following.search(plain):
        return "next"
    if found := line.search(plain):
        refers_back = _ANAPHORA.search(plain, found.start()) is not None
        return "line" if refers_back and not plain.endswith(":") else "next"
    return None


def _only_announces(text: str) -> bool:
    """Return whether a line says little beside its request, so that the next line is what it is about."""
    plain = " ".join(text.split()).replace("’", "'")
    for pattern in _load_patterns():
        plain = pattern.sub(" ", plain)
    return plain.rstrip().endswith((":", "?", "：", "？")) or len(_WORD.findall(plain)) <= MAX_ANNOUNCEMENT


@cache
def _load_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    text = files("newton.heart.reconciliation").joinpath("off_record.yaml").read_text(encoding="utf-8")
    tables = yaml.safe_load(text)
    line, following = (
        re.compile("|".join(f"(?:{one})" for table in tables.values() for one in table[name]), re.IGNORECASE)
        for name in ("line", "next")
    )
    return line, following
