"""Parsing of numbers, dates and times of day in any English spelling."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_PARTS = "morning afternoon evening night today tomorrow yesterday tonight weekend"

CARDINALS = {word: n for n, word in enumerate([*_UNITS.split(), "eighteen", "nineteen"])} | {
    word: 20 + 10 * n for n, word in enumerate(_TENS.split())
}
ORDINALS = {word: n for n, word in enumerate(_ORDINALS.split())}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
MONTHS = {form: n for n, name in enumerate(_MONTHS.split(), 1) for form in (name, name[:3])} | {"sept": 9}
DAYS = {name: name[:3] for name in _DAYS.split()}
PLURAL_DAYS = {f"{name}s": name[:3] for name in _DAYS.split()}
SHORT_DAYS = {name[:3] for name in _DAYS.split()}
DAY_PARTS = {form: part for part in _PARTS.split() for form in (part, f"{part}s")}
NAMED_TIMES = {"noon": "12:00", "midday": "12:00", "midnight": "0:00"}

_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(am|pm)?")
_NTH = re.compile(r"(\d+)(?:st|nd|rd|th)")
_UNIT = re.compile(r"([-.]?\d+(?:\.\d+)?)([a-z]{1,3}|[a-z]+s)")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_YEAR = re.compile(r"1\d{3}|20\d\d")

_TIME_WORDS = "in since until of last next by every from to before after and during this"
_BEFORE_MONTHS = frozenset(_TIME_WORDS.split())

NUMBER_PREFIX, TIME_PREFIX = "#", "@"  # the first character of their parsed form


class WordToken(NamedTuple):
    """A lower-case word, whether it is capitalized like a name, and whether it is the first of a sentence."""

    text: str
    is_capitalized: bool = False
    starts_sentence: bool = False


def parse_numbers(words: Sequence[WordToken]) -> list[WordToken]:
    """Return the words with numbers and times replaced by parsed forms.

    Numbers become #3 and #nth3; times become @day5, @month5, @year2024, @mon, @morning and @clock9:30.
    """
    texts = [word.text for word in words]
    tokens: list[WordToken] = []
    position = 0
    while position < len(words):
        length, forms = _parse_at(texts, position, is_capitalized=words[position].is_capitalized)
        tokens += map(WordToken, forms) if length else [words[position]]
        position += max(length, 1)
    return _mark_dates(tokens)


def _parse_at(words: Sequence[str], position: int, *, is_capitalized: bool) -> tuple[int, list[str]]:
    """Return how many words the number or time at `position` has, 0 if there is none, and its parsed forms."""
    word, last = words[position], words[position - 1] if position else ""
    following = words[position + 1] if position + 1 < len(words) else ""
    if word in CARDINALS or (word in SCALES and last == "a"):
        return _parse_spelled_number(words, position)
    if word in ORDINALS and not (word == "second" and last[:1].isdigit()):
        return 1, [f"#nth{ORDINALS[word]}"]
    if word == "dozen":
        return 1, ["#12"]
    if word in (":30", ":15") and following:
        return _parse_past_hour(following, word)
    if any(c.isdigit() for c in word):
        return _parse_figures(word, following)
    return _parse_named_time(word, is_capitalized=is_capitalized)


def _parse_spelled_number(words: Sequence[str], position: int) -> tuple[int, list[str]]:
    total = part = length = 0
    for word in words[position : position + 12]:
        if word in CARDINALS and (length == 0 or _can_append(part, CARDINALS[word])):
            part += CARDINALS[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word in SCALES:
            total, part = total + max(part, 1) * SCALES[word], 0
        else:
            break
        length += 1
    return length, [f"#{total + part}"]


def _can_append(part: int, unit: int) -> bool:
    """Return whether two spelled numbers in a row form one number: "forty two" does, "four two" does not."""
    return part == 0 or (part % 100 == 0 and unit < 100) or (part % 100 >= 20 and part % 10 == 0 and 0 < unit < 10)


def _parse_past_hour(word: str, minutes: str) -> tuple[int, list[str]]:
    hour = CARDINALS.get(word, int(word) if word.isascii() and word.isdigit() else 99)
    return (2, [f"@clock{hour}{minutes}"]) if hour <= 24 else (0, [])


def _parse_figures(word: str, following: str) -> tuple[int, list[str]]:
    if iso := _ISO.fullmatch(word):
        return 1, [f"@day{int(iso[3])}", f"@month{int(iso[2])}", f"@year{iso[1]}"]
    half = following if following in ("am", "pm") else ""
    clock = _CLOCK.fullmatch(word + half)
    if clock and (clock[2] or clock[3] or following == ":00"):
        return (2 if half or following == ":00" else 1), [_format_clock(int(clock[1]), clock[2] or "00", clock[3])]
    if nth := _NTH.fullmatch(word):
        return 1, [f"#nth{int(nth[1])}"]
    if _GROUPED.fullmatch(word):
        word = word.replace(",", "")
    if unit := _UNIT.fullmatch(word):
        return 1, [f"#{int(unit[1]) * 1000}"] if unit[2] == "k" and unit[1].isdigit() else [f"#{unit[1]}", unit[2]]
    return 1, [f"@year{word}" if _YEAR.fullmatch(word) else f"#{word}"]


def _format_clock(hour: int, minutes: str, half: str | None) -> str:
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"@clock{hour}:{minutes}"


def _parse_named_time(word: str, *, is_capitalized: bool) -> tuple[int, list[str]]:
    if word in DAYS or (word in SHORT_DAYS and is_capitalized):
        return 1, [f"@{word[:3]}"]
    if word in PLURAL_DAYS:
        return 1, ["~all", f"@{PLURAL_DAYS[word]}"]
    if word in DAY_PARTS:
        return 1, [f"@{DAY_PARTS[word]}"]
    return (1, [f"@clock{NAMED_TIMES[word]}"]) if word in NAMED_TIMES else (0, [])


def _mark_dates(words: list[WordToken]) -> list[WordToken]:
    """Replace months and the days next to them by parsed forms.

    The words "may" and "march" are months only next to a word of time.
    """
    dated = list(words)
    for position, word in enumerate(words):
        if word.text in MONTHS:
            day = _find_adjacent_day(words, position)
            if day is not None:
                dated[day] = WordToken(f"@day{words[day].text.removeprefix('#').removeprefix('nth')}")
            if day is not None or _is_month(words, position):
                dated[position] = WordToken(f"@month{MONTHS[word.text]}")
            if day == position - 2:
                dated[position - 1] = WordToken("")
    return [word for word in dated if word.text]


def _find_adjacent_day(words: list[WordToken], position: int) -> int | None:
    """Return the position of the day next to a month, as in 5 May, May 5th, the 5th of May; None if there is none."""
    sides = [position - 1, position + 1, *([position - 2] if position > 1 and words[position - 1].text == "of" else [])]
    return next((n for n in sides if 0 <= n < len(words) and _is_day(words[n].text)), None)


def _is_day(word: str) -> bool:
    number = word.removeprefix("#").removeprefix("nth")
    return word.startswith("#") and number.isascii() and number.isdigit() and 1 <= int(number[:3]) <= 31


def _is_month(words: list[WordToken], position: int) -> bool:
    word = words[position]
    if position + 1 < len(words) and words[position + 1].text.startswith("@year"):
        return True
    last = words[position - 1].text if position else ""
    return word.is_capitalized and (word.text not in ("may", "march") or last in _BEFORE_MONTHS)
