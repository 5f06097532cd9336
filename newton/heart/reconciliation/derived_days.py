"""Days that texts said on known days may mean, to check that another text names only such days. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache

from newton.text.dates import find_dates_in
from newton.text.english_dates import find_dates
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.numerals import NumberMention, find_numbers

DAY = timedelta(days=1)
WEEK = 7 * DAY
MAX_MONTH = 31  # days
MAX_DAYS = 8  # of a range whose days all count
MAX_DISTANCES = 6  # in time, that count
MAX_SPAN = 400  # units of a distance in time
_MONTH_NAMES = "january february march april may june july august september october november december"
ENGLISH_MONTHS = tuple(_MONTH_NAMES.split())
_ENGLISH_UNITS = {"day": "days?|nights?", "week": "weeks?|fortnight", "month": "months?", "year": "years?"}
_MONTH = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?")
_OTHER_WEEKDAY = re.compile(  # short or in the plural
    r"\b(?:(mon(?:days)?)|(tues?(?:days)?)|(weds?|wednesdays)|(thu(?:rs?)?(?:days)?)|(fri(?:days)?)|(sat(?:urdays)?)|(sun(?:days)?))\b"
)
_GAP = 4  # characters between a weekday and its date


@dataclass(frozen=True, slots=True)
class DerivedDays:
    """The days and months that texts may mean, and the weekdays that they name."""

    days: frozenset[date]
    months: frozenset[tuple[int, int]]  # year and month
    weekdays: frozenset[int]  # from Monday = 0

    def has_day(self, day: date) -> bool:
        return day in self.days

    def has_month(self, day: date) -> bool:
        return (day.year, day.month) in self.months

    def has_month_of_any_year(self, month: int) -> bool:
        return any(one == month for _, one in self.months)


def derive_days(texts: Iterable[tuple[str, date]]) -> DerivedDays:
    """Return all days that texts may mean; each text comes with the day on which it was said.

    Every reading of an expression counts: "Friday" is the last and the next one, and those a week away; a number is a
    day of the months around and of named months; a distance ("two weeks more") is counted from each of these days.
    """
    days, months, distances = set[date](), set[tuple[int, int]](), set[tuple[str, int]]()
    numbered, named = set[date](), set[tuple[int, int]]()
    weekdays = set[int]()
    texts = list(texts)
    for text, said_on in texts:
        days.add(said_on)
        weekdays |= list_weekdays(text, said_on)
        for first, end, is_dated in _iter_ranges(text, said_on):
            months |= {(day.year, day.month) for day in (first, end - DAY)}
            inner = range((end - first).days) if (end - first).days <= MAX_DAYS else (0, (end - first).days - 1)
            days |= {first + DAY * n for n in inner}
            if end - first == DAY and not is_dated:
                days |= {first + WEEK, first - WEEK}
        distances |= set(_iter_distances(text))
        days |= set(_iter_other_weekdays(text, said_on))
        for month in _find_months(text):
            first = [date(said_on.year + years, month, 1) for years in (-1, 0, 1)]
            nearest = sorted(first, key=lambda day: abs((day - said_on).days))[:2]
            named |= {(day.year, day.month) for day in nearest}
            days |= {day for one in nearest for day in (one, _move(one, "month", 1) or one)}
    months |= named
    for text, said_on in texts:
        numbered |= set(_iter_days_of_month(text, said_on, named))
    for unit, count in sorted(distances)[:MAX_DISTANCES]:
        days |= {moved for day in tuple(days) for moved in (_move(day, unit, count), _move(day, unit, -count)) if moved}
    days |= numbered
    months |= {(day.year, day.month) for day in days}
    return DerivedDays(frozenset(days), frozenset(months), frozenset(weekdays))


def list_weekdays(text: str, said_on: date) -> set[int]:
    """Return the weekdays that a text names alone, without a date.

    >>> list_weekdays("On Monday, and always on Fridays; on 22 October.", date(2026, 11, 23))
    {0, 4}
    """
    named = {day.weekday() for day in _iter_other_weekdays(text, said_on)}
    for day in (said_on, said_on + DAY):  # the weekday of the day itself has one meaning only, as "today" has
        for start, end, ranges in _iter_mentions(text, day):
            if _is_weekday(text[start:end], ranges):
                named.add(ranges[0][0].weekday())
    return named


def _is_weekday(mention: str, ranges: Sequence[tuple[date, date]]) -> bool:
    """Return whether an expression is the name of a weekday, which may mean the last or the next one."""
    if len(ranges) < 2 or any(map(str.isdigit, mention)):
        return False
    return {end - first for first, end in ranges} == {DAY} and len({first.weekday() for first, _ in ranges}) == 1


def parse_when(when: str) -> tuple[date, bool] | None:
    """Return the day of "YYYY-MM-DD", or the first of "YYYY-MM", and whether it is a whole month; None for others.

    >>> parse_when("2026-11"), parse_when("next week")
    ((datetime.date(2026, 11, 1), True), None)
    """
    match = _MONTH.fullmatch(when.strip()[:10].rstrip("-"))
    if match is None:
        return None
    with suppress(ValueError):
        return date(int(match[1]), int(match[2]), int(match[3] or 1)), match[3] is None
    return None


def mask_derived_dates(text: str, said_on: date, derived: DerivedDays) -> str | None:
    """Return the text without its date expressions; None if one of them is not among the derived days.

    A month alone is accepted if a derived day is in it, a weekday alone if the texts name it, and a weekday before a
    date if the date is on it. Years that are not derived are left in the text, as numbers.
    """
    masked = list(text)
    mentions = sorted(_iter_mentions(text, said_on))
    for n, (start, end, ranges) in enumerate(mentions):
        following = mentions[n + 1] if n + 1 < len(mentions) and mentions[n + 1][0] - end <= _GAP else None
        is_named = _is_weekday(text[start:end], ranges) and ranges[0][0].weekday() in derived.weekdays
        if not is_named and not any(_is_derived(first, last, derived) for first, last in ranges):
            if all((last - first).days > MAX_MONTH for first, last in ranges):
                continue
            if following is None or not _is_weekday_of(ranges, following[2]):
                return None
        masked[start:end] = " " * (end - start)
    return "".join(masked)


def _is_weekday_of(weekday: Iterable[tuple[date, date]], dates: Iterable[tuple[date, date]]) -> bool:
    days = {first.weekday() for first, end in weekday if end - first == DAY}
    return any(first.weekday() in days for first, end in dates if end - first == DAY)


def _iter_other_weekdays(text: str, said_on: date) -> Iterator[date]:
    """Yield the days around that a short or plural name of a weekday may mean ("sat 28 nov", "on Mondays")."""
    for match in _OTHER_WEEKDAY.finditer(text.lower()):
        shift = (match.lastindex or 1) - 1 - said_on.weekday()
        yield from (said_on + timedelta(days=shift) + WEEK * weeks for weeks in (-1, 0, 1))


def _is_derived(first: date, end: date, derived: DerivedDays) -> bool:
    length = (end - first).days
    if length == 1:
        if any((day.month, day.day) == (first.month, first.day) for day in derived.days):
            return True
        # "Tuesday the 22nd, he works until the Monday" means the 21st
        return first.weekday() in derived.weekdays and any(abs(day - first) < WEEK for day in derived.days)
    if 28 <= length <= MAX_MONTH:
        return derived.has_month_of_any_year(first.month)
    return any(first <= day < end for day in derived.days)


def _iter_ranges(text: str, said_on: date) -> Iterator[tuple[date, date, bool]]:
    """Yield the ranges of the date expressions of a text, and whether the expression has a number, as a date has."""
    for start, end, ranges in _iter_mentions(text, said_on):
        is_dated = any(map(str.isdigit, text[start:end]))
        yield from ((first, last, is_dated) for first, last in ranges)


def _iter_mentions(text: str, said_on: date) -> Iterator[tuple[int, int, tuple[tuple[date, date], ...]]]:
    """Yield start, end and possible date ranges of each date expression in a text."""
    plain = text.lower()
    if len(plain) != len(text):
        return
    code = detect_language(text)
    foreign = find_dates_in(plain, said_on, code) if code != ENGLISH else ()
    for match, ranges in (*foreign, *find_dates(plain, said_on)):
        yield match.start(), match.end(), ranges


def _find_months(text: str) -> set[int]:
    """Return the months that a text names, whatever stands before them."""
    plain = text.lower()
    names = load_language(detect_language(text)).dates.get("months") or ENGLISH_MONTHS
    return {number for number, name in enumerate(names, 1) if re.search(rf"(?<![^\W\d])(?:{name})(?![^\W\d])", plain)}


def _iter_days_of_month(text: str, said_on: date, named: Iterable[tuple[int, int]]) -> Iterator[date]:
    months = [(said_on.year + month // 12, month % 12 + 1) for month in range(said_on.month - 2, said_on.month + 6)]
    for number in find_numbers(text, detect_language(text)):
        for form in number.forms:
            if form.isascii() and form.isdigit() and 1 <= int(form) <= 31:
                for year, month in (*months, *named):
                    with suppress(ValueError):
                        yield date(year, month, int(form))


def _iter_distances(text: str) -> Iterator[tuple[str, int]]:
    """Yield the distances in time of a text, such as (week, 2) for "two weeks more". Without a number, it is one."""
    code, plain = detect_language(text), text.lower()
    numbers = find_numbers(text, code)
    for unit, pattern in _unit_patterns(code).items():
        for match in pattern.finditer(plain):
            counts = {count for one in numbers for count in _read_count(one, plain[: match.start()])} or {1}
            factor = 2 if match[0] == "fortnight" else 1
            yield from ((unit, factor * count) for count in counts)


def _read_count(number: NumberMention, before: str) -> Iterator[int]:
    """Yield the value of a number that is the last word of the text before a unit."""
    if not before[number.end :].strip(" -") and number.end <= len(before):
        yield from (int(form) for form in number.forms if form.isdigit() and int(form) <= MAX_SPAN)


@cache
def _unit_patterns(code: str) -> dict[str, re.Pattern[str]]:
    units = load_language(code).dates.get("units") or _ENGLISH_UNITS
    edge = r"\b" if load_language(code).is_spaced else ""
    return {unit: re.compile(rf"{edge}(?:{pattern}){edge}") for unit, pattern in units.items()}


def _move(day: date, unit: str, count: int) -> date | None:
    try:
        if unit in ("day", "week"):
            return day + (WEEK if unit == "week" else DAY) * count
        month = day.month - 1 + count * (12 if unit == "year" else 1)
        year, month = day.year + month // 12, month % 12 + 1
        last = (date(year + month // 12, month % 12 + 1, 1) - DAY).day
        return date(year, month, min(day.day, last))
    except (ValueError, OverflowError):
        return None
