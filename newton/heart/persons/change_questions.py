"""Questions for what changed in a time, such as "What changed since Monday?", in ten languages. Pure."""

import re
from datetime import datetime
from functools import cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, detect_languages
from newton.text.time_expressions import TimeRange, find_time_ranges, remove_times

MAX_READ_CHARACTERS = 200
_EDGES = re.compile(r"^\W+|\W+$|(?<=\w)[,，、]|\s+(?=\s)|(?<=[^\x00-\u2fff])\s+")


def read_change_question(text: str, *, now: datetime) -> TimeRange | None:
    """Return the time of which an input asks what changed; None for another input, also one with a topic.

    >>> now = datetime(2026, 11, 27)
    >>> texts = "What changed since Monday?", "Was hat sich seit Montag geändert?", "What changed in the cellar today?"
    >>> [str(span.start)[:10] if (span := read_change_question(one, now=now)) else None for one in texts]
    ['2026-11-23', '2026-11-23', None]
    """
    folded = " ".join(text[: MAX_READ_CHARACTERS + 1].replace("’", "'").split())
    spans = find_time_ranges(folded, now=now) if len(folded) <= MAX_READ_CHARACTERS else []
    if len(spans) != 1:
        return None
    rest = _EDGES.sub("", remove_times(folded, spans))
    for code in detect_languages(folded) or (ENGLISH,):
        if match := _patterns()[code].fullmatch(rest):
            is_open = any(match.groupdict().values())
            return spans[0]._replace(end=None) if is_open else spans[0]
    return None


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    source = files("newton.heart.persons").joinpath("change_words.yaml").read_text(encoding="utf-8")
    words: dict[str, str] = parse_trusted(source)
    return {code: re.compile(pattern) for code, pattern in words.items()}
