"""Typed values of a text, such as times, days, codes, numbers and names, and the words of corrections. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.names import find_names
from newton.text.numerals import DAYS, MONTHS, ORDINALS, find_numbers

_CLOCK = re.compile(r"\b\d{1,2}[:.h]\d{2}\b(?!\.\d|\.\w)(?: ?[ap]m)?|\b\d{1,2} ?(?:[ap]m|uhr|h)\b", re.IGNORECASE)
_CODE = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d_])(?!\d+(?:st|nd|rd|th|er|k|kg|g|mm|cm|m|km|ml|l)\b)[\w-]{2,}\b")
_CAPITALIZED = re.compile(r"(?<![\w'’])[^\W\da-zß-öø-ÿа-яё_][\w'’-]*[^\W\d_](?: [^\W\da-zß-öø-ÿа-яё_][\w'’-]+)*")

Kind = Literal["time", "day", "date", "code", "number", "name"]


Cues = Mapping[str, re.Pattern[str]]  # of one or two languages, by what they do


class TypedValue(NamedTuple):
    kind: Kind
    start: int
    end: int
    text: str


def find_values(text: str) -> list[TypedValue]:
    """Return the values of a text in order: times, days, dates, codes, numbers and names, none within another."""
    found, code = list[TypedValue](), detect_language(text)
    taken: set[int] = set()
    for kind, start, end in _iter_values(text, code):
        if not taken & set(range(start, end)):
            taken |= set(range(start, end))
            found.append(TypedValue(kind, start, end, text[start:end]))
    return sorted(found, key=lambda one: one.start)


def _iter_values(text: str, code: str) -> Iterator[tuple[Kind, int, int]]:
    codes = tuple(dict.fromkeys((code, ENGLISH)))
    patterns: Iterable[tuple[Kind, re.Pattern[str]]] = (
        ("time", _CLOCK),
        ("time", _load_words(*codes)["clock"]),
        *(("date", _dates(one)) for one in codes),
        *(("day", _days(one)) for one in codes),
        ("code", _CODE),
    )
    for kind, pattern in patterns:
        yield from ((kind, *one.span()) for one in pattern.finditer(text))
    numbers = [one for one in find_numbers(text, code) if text[one.start : one.end].casefold() not in ORDINALS]
    yield from (("number", one.start, one.end) for one in numbers)
    names = [(one.start, one.start + len(one.text)) for one in find_names(text)]
    if code != ENGLISH:
        common = load_language(code).words
        names += [one.span() for one in _CAPITALIZED.finditer(text) if one[0].casefold() not in common]
    yield from (("name", *span) for span in names)


@cache
def _days(code: str) -> re.Pattern[str]:
    names = DAYS if code == ENGLISH else load_language(code).dates.get("weekdays", ())
    ending = "s?" if code == ENGLISH else r"\w{0,2}"
    return re.compile(rf"(?<!\w)(?:{'|'.join(names) or '(?!)'}){ending}(?!\w)", re.IGNORECASE)


@cache
def _dates(code: str) -> re.Pattern[str]:
    names = "|".join(MONTHS if code == ENGLISH else load_language(code).dates.get("months", ())) or "(?!)"
    month = rf"(?:{names})(?!\w)"
    day = r"\d{1,2}(?:st|nd|rd|th|\.|er|º)?"
    numeric = r"\d{1,2}\.\d{1,2}\.(?:\d{2,4})?|\d{1,2}(?:st|nd|rd|th)\b"
    return re.compile(rf"(?<![\w.])(?:{day}(?: of| de)? ?{month}|{month} {day}(?!\w)|{numeric}|{month})", re.IGNORECASE)


def words_for(*messages: str) -> Cues:
    """Return the words of the languages of messages, and of English, which people mix with theirs."""
    return _load_words(*dict.fromkeys((*map(detect_language, messages), ENGLISH)))


@cache
def _load_words(*codes: str) -> Cues:
    text = files("newton.heart.statements").joinpath("corrections.yaml").read_text(encoding="utf-8")
    data: Mapping[str, Mapping[str, str]] = parse_trusted(text)
    edges = {code: r"(?<![\w'])(?:{})(?!\w)" if load_language(code).is_spaced else "(?:{})" for code in codes}
    named = {name: "|".join(edges[code].format(data[code][name]) for code in codes) for name in data[ENGLISH]}
    # people leave out apostrophes: "thats wrong"
    return {
        name: re.compile(re.sub(r"(?<=\w)'(?=\w)", "['’]?", pattern), re.IGNORECASE) for name, pattern in named.items()
    }


_DAY_OF_MONTH = re.compile(r"\d{1,2}(?:st|nd|rd|th|\.)?(?!\w)")


def match_case(new: str, old: str) -> str:
    """Return the right words with a capital if the wrong ones have one at the beginning of a name."""
    return f"{new[:1].upper()}{new[1:]}" if old[:1].isupper() and new[:1].islower() else new


def complete_day(new: str | None, old: str) -> str | None:
    """Return the right day with the month of the wrong one, as "22nd" for "20 October" means "22nd October"."""
    is_day = new is not None and _DAY_OF_MONTH.fullmatch(new) and not _DAY_OF_MONTH.fullmatch(old)
    return _DAY_OF_MONTH.sub(new, old, count=1) if is_day and new and re.search(r"[^\W\d]{3}", old) else new
