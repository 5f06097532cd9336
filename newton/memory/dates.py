"""Days, weeks, months and years as people name them, found in a text by the words they are named with. Pure."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple, TypeAlias

Days: TypeAlias = tuple[date, date]  # the first, and the one behind the last
Match: TypeAlias = re.Match[str]

DAY = timedelta(days=1)
WEEK = 7 * DAY

MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SHORT_WEEKDAYS = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"  # words of their own too: one sat in the sun
_NUMBERS: Mapping[str, int] = {
    **{"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5},
    **{"several": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12},
}
_NUMBER = "|".join((r"\d{1,3}", *sorted(_NUMBERS, key=len, reverse=True)))
YEAR = r"(?:19|20)\d\d"
_A_WORD = re.compile(r"[a-z]+")
_A_YEAR = re.compile(YEAR)


def dated(text: str, today: date) -> Iterator[tuple[Match, tuple[Days, ...]]]:
    """Every time that a text in lower case names, in no order and one within another, with the days that it may mean:
    the latest that have begun, and the next where nothing says which."""
    words = _TELLING.intersection(_A_WORD.findall(text))
    if _A_YEAR.search(text):
        words |= _OF_YEARS
    for form in _FORMS if words else ():
        for match in () if form.needs.isdisjoint(words) else _compiled(form.pattern).finditer(text):
            try:
                last, following = form.resolve(match, today), form.following(match, today)
            except (ValueError, OverflowError):  # the 31st of February, a million years ago
                continue
            yield match, tuple(dict.fromkeys((last, following or last)))


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """When it is needed: all of them take a tenth of a second."""
    return re.compile(pattern)


def _weeks(today: date, ahead: int) -> Days:
    monday = today - today.weekday() * DAY + ahead * WEEK
    return monday, monday + WEEK


def _month(year: int, month: int) -> Days:
    """Months may be counted past December or before January."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _day(day: date) -> Days:
    return day, day + DAY


def _in_unit(unit: str, today: date, ahead: int) -> Days:
    """The day, week, weekend, month, quarter or year so many of it ahead of today's."""
    match unit:
        case "week":
            return _weeks(today, ahead)
        case "weekend":
            monday, end = _weeks(today, ahead)
            return monday + 5 * DAY, end
        case "month":
            return _month(today.year, today.month + ahead)
        case "quarter":
            first = (today.month - 1) // 3 * 3 + 1 + 3 * ahead
            return _month(today.year, first)[0], _month(today.year, first + 2)[1]
        case "year":
            return _year(today.year + ahead)
        case _:
            return _day(today + ahead * DAY)


_STEP: Mapping[str, int] = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}
_NAMED: Mapping[str, int] = {
    **{"today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0},
    **{"yesterday": -1, "last night": -1, "the day before yesterday": -2, "tomorrow": 1, "the day after tomorrow": 2},
}


def _by_name(match: Match, today: date) -> Days:
    return _day(today + _NAMED[match["name"]] * DAY)


def _by_unit(match: Match, today: date) -> Days:
    return _in_unit(match["unit"], today, _STEP[match["step"]])


def _count(match: Match) -> int:
    return int(match["count"]) if match["count"].isdigit() else _NUMBERS[match["count"]]


def _ago(match: Match, today: date) -> Days:
    """A number of days ago is that day; of longer units, the whole of the one it falls in."""
    return _in_unit(match["unit"], today, -_count(match))


def _lately(match: Match, today: date) -> Days:
    """The last so many: from so long ago up to now."""
    unit, count = match["unit"], _count(match)
    if unit in ("month", "year"):
        months = count * (12 if unit == "year" else 1)
        first, end = _month(today.year, today.month - months)
        return min(first + (today.day - 1) * DAY, end - DAY), today + DAY
    return today - count * (WEEK if unit == "week" else DAY), today + DAY


def _weekday(match: Match, today: date) -> Days:
    """The latest one, today's included; the last one is before today, the next one and this one after or on it."""
    wanted = ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(match["day"][:3])
    match match["step"] or "":
        case "last" | "previous" | "past":
            return _day(today - ((today.weekday() - wanted - 1) % 7 + 1) * DAY)
        case "next" | "coming":
            return _day(today + ((wanted - today.weekday() - 1) % 7 + 1) * DAY)
        case "this":
            return _day(_weeks(today, 0)[0] + wanted * DAY)
        case _:
            return _day(today - (today.weekday() - wanted) % 7 * DAY)


def _next_weekday(match: Match, today: date) -> Days | None:
    """The first one on or after today, of one that is only named."""
    last = _weekday(match, today)
    return (last if last[0] == today else (last[0] + WEEK, last[1] + WEEK)) if not match["step"] else None


def _month_named(match: Match, today: date) -> Days:
    said, month = match.groupdict(), _month_number(match["month"])
    if said.get("year"):
        return _month(int(match["year"]), month)
    ahead = {"last": -1 if month >= today.month else 0, "next": 1 if month <= today.month else 0, "this": 0}
    usual = 0 if month <= today.month else -1
    return _month(today.year + ahead.get(said.get("step") or "", usual), month)


def _next_month(match: Match, today: date) -> Days | None:
    said = match.groupdict()
    if said.get("year") or said.get("step"):
        return None
    month = _month_number(match["month"])
    return _month(today.year + (month < today.month), month)


def _date(match: Match, today: date) -> Days:
    month, day = _month_number(match["month"]), int(match["date"])
    if match["year"]:
        return _day(date(int(match["year"]), month, day))
    return _day(max(found for found in _dates(month, day, today) if found <= today))


def _next_date(match: Match, today: date) -> Days | None:
    if match["year"]:
        return None
    month, day = _month_number(match["month"]), int(match["date"])
    return _day(min(found for found in _dates(month, day, today) if found >= today))


def _dates(month: int, day: int, today: date) -> Iterator[date]:
    """That day in the years around; a leap day has none in most of them."""
    for year in range(today.year - 8, today.year + 9):
        with suppress(ValueError):
            yield date(year, month, day)


def _beside_a_date(match: Match, today: date) -> Days:
    """So long before or after a date: the day, the weekend or the seven days beside it; of a number the whole unit."""
    day, unit, before = _date(match, today)[0], match["unit"], match["way"] == "before"
    if match["count"]:
        return _in_unit(unit, day, -_count(match) if before else _count(match))
    if unit == "week":
        return (day - WEEK, day) if before else (day + DAY, day + DAY + WEEK)
    return _in_unit(unit, day, -1 if before else 0 if unit == "weekend" and day.weekday() < 5 else 1)


def _month_number(name: str) -> int:
    return ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec").index(name[:3]) + 1


def _iso(match: Match, _: date) -> Days:
    year, month = int(match["year"]), int(match["month"])
    return _day(date(year, month, int(match["date"]))) if match["date"] else _whole(year, month)


def _whole(year: int, month: int) -> Days:
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _month(year, month)


def _year_named(match: Match, _: date) -> Days:
    return _year(int(match["year"]))


def _nothing(_: Match, __: date) -> Days | None:
    return None


class _Form(NamedTuple):
    """A way to tell a time. Only a text that has one of the words it `needs` is read for it: most have none.

    Where what is said may mean the next such time as well, that is what is `following`."""

    pattern: str
    resolve: Callable[[Match, date], Days]
    needs: frozenset[str]
    following: Callable[[Match, date], Days | None]


_SIDES = "since|from|after|before|until|till|by"
_SIDE = rf"(?:(?P<side>{_SIDES})\s)?"
# A month, a year or a short name of a day alone: one may march in May, and 2024 may be a price.
_LED = rf"(?:(?P<side>{_SIDES})|in|during)\s"
_STEPS = "last|previous|past|this|next|coming"
_DATE = r"(?P<date>\d\d?)(?:st|nd|rd|th)?"
_UNITS = "day|week|month|year"
_DAY_FIRST = rf"(?:the )?{_DATE}(?: of)? (?P<month>{MONTHS})(?:,? (?P<year>{YEAR}))?"
_MONTH_FIRST = rf"(?P<month>{MONTHS}) (?:the )?{_DATE}(?:,? (?P<year>{YEAR}))?"
_BESIDE = rf"(?:the|last|(?P<count>{_NUMBER})) (?P<unit>day|weekend|week|month|year)s? (?P<way>before|after) "


def _spelt(pattern: str) -> frozenset[str]:
    """Every word that a pattern of optional endings may match.

    >>> sorted(_spelt("tues?|thu(?:rs?)?"))
    ['thu', 'thur', 'thurs', 'tue', 'tues']
    """
    return frozenset(word for spelling in _parts(pattern) for word in _endings(spelling))


def _parts(pattern: str) -> list[str]:
    return pattern.split("|")


def _endings(spelling: str) -> Iterable[str]:
    base, bracket, rest = spelling.partition("(?:")
    if bracket:
        return {base, *(base + end for end in _endings(rest.removesuffix(")?")))}
    return {spelling[:-2], spelling[:-1]} if spelling.endswith("?") else {spelling}


_OF_YEARS = frozenset({"#"})
_OF_MONTHS = _spelt(MONTHS)
_OF_UNITS = frozenset({"week", "weekend", "month", "quarter", "year"})
_OF_COUNTS = frozenset({*_UNITS.split("|"), "days", "weeks", "months", "years"})


_FOLLOWING: Mapping[Callable[[Match, date], Days], Callable[[Match, date], Days | None]] = {
    _weekday: _next_weekday,
    _month_named: _next_month,
    _date: _next_date,
}


def _form(said: str, resolve: Callable[[Match, date], Days], needs: frozenset[str], lead: str = _SIDE) -> _Form:
    return _Form(rf"(?<![\w-]){lead}{said}(?![\w-])", resolve, needs, _FOLLOWING.get(resolve, _nothing))


_FORMS = (
    _form(
        rf"(?P<name>{'|'.join(sorted(_NAMED, key=len, reverse=True))})",
        _by_name,
        frozenset({"today", "tonight", "yesterday", "tomorrow", "morning", "afternoon", "evening", "night"}),
    ),
    _form(rf"(?:the )?(?P<step>{_STEPS}) (?P<unit>weekend|week|month|quarter|year)", _by_unit, _OF_UNITS),
    _form(rf"(?:about )?(?P<count>{_NUMBER}) (?P<unit>{_UNITS})s? ago", _ago, frozenset({"ago"})),
    _form(
        rf"(?:(?:in|over|within) )?(?:the )?(?:last|past) (?P<count>{_NUMBER}) (?P<unit>{_UNITS})s?",
        _lately,
        _OF_COUNTS,
    ),
    _form(rf"{_BESIDE}{_DAY_FIRST}", _beside_a_date, _OF_MONTHS),
    _form(rf"{_BESIDE}{_MONTH_FIRST}", _beside_a_date, _OF_MONTHS),
    _form(rf"(?:on )?(?:(?P<step>{_STEPS}) )?(?P<day>{_WEEKDAYS})", _weekday, _spelt(_WEEKDAYS)),
    _form(
        rf"(?:(?P<side>{_SIDES})|on|(?P<step>{_STEPS}))\s(?P<day>{_SHORT_WEEKDAYS})",
        _weekday,
        _spelt(_SHORT_WEEKDAYS),
        lead="",
    ),
    _form(rf"(?:in )?(?P<step>last|this|next) (?P<month>{MONTHS})", _month_named, _OF_MONTHS),
    _form(rf"(?:in |during )?(?P<month>{MONTHS}),? (?P<year>{YEAR})", _month_named, _OF_MONTHS),
    _form(rf"(?:on )?{_DAY_FIRST}", _date, _OF_MONTHS),
    _form(rf"(?:on )?{_MONTH_FIRST}", _date, _OF_MONTHS),
    _form(rf"(?:on )?(?P<year>{YEAR})-(?P<month>\d\d)(?:-(?P<date>\d\d))?", _iso, _OF_YEARS),
    _form(rf"(?P<month>{MONTHS})", _month_named, _OF_MONTHS, lead=_LED),
    _form(rf"(?P<year>{YEAR})", _year_named, _OF_YEARS, lead=_LED),
)
_TELLING = frozenset(word for form in _FORMS for word in form.needs)
