"""Parsing of English date expressions (days, weeks, months, years) into date ranges. Pure."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import NamedTuple, TypeAlias

DateRange: TypeAlias = tuple[date, date]  # first day and the day after the last
Match: TypeAlias = re.Match[str]

DAY = timedelta(days=1)
WEEK = 7 * DAY

MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SHORT_WEEKDAYS = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"  # some are words of their own: "sat", "sun"
_NUMBER_WORDS: Mapping[str, int] = {
    **{"a": 1, "an": 1, "one": 1, "two": 2, "a couple of": 2, "three": 3, "a few": 3, "four": 4, "five": 5},
    **{"several": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12},
}
_NUMBER = "|".join((r"\d{1,3}", *sorted(_NUMBER_WORDS, key=len, reverse=True)))
YEAR = r"(?:19|20)\d\d"
_WORD_PATTERN = re.compile(r"[a-z]+")
_YEAR_PATTERN = re.compile(YEAR)


def find_dates(text: str, today: date) -> Iterator[tuple[Match, tuple[DateRange, ...]]]:
    """Yield every date expression of a lower-case text with the date ranges that it may mean.

    Matches are unordered and may overlap. The first range is the latest that has begun. An expression that may also
    mean the future, such as "Friday", has the next such range as a second one.
    """
    words = _TRIGGER_WORDS.intersection(_WORD_PATTERN.findall(text))
    if _YEAR_PATTERN.search(text):
        words |= _YEAR_TRIGGERS
    for pattern, resolve, triggers in _PATTERNS:
        for match in () if triggers.isdisjoint(words) else _compile(pattern).finditer(text):
            try:
                last = resolve(match, today)
                next_range = _NEXT_RESOLVERS[resolve](match, today) if resolve in _NEXT_RESOLVERS else None
            except (ValueError, OverflowError):  # the 31st of February, a million years ago
                continue
            yield match, tuple(dict.fromkeys((last, next_range or last)))


@functools.cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use, because compiling all of them takes 0.1 s."""
    return re.compile(pattern)


def _week_range(today: date, offset: int) -> DateRange:
    monday = today - today.weekday() * DAY + offset * WEEK
    return monday, monday + WEEK


def _month_range(year: int, month: int) -> DateRange:
    """Return the date range of a month. A `month` below 1 or above 12 lies in another year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year_range(year: int) -> DateRange:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _day_range(day: date) -> DateRange:
    return day, day + DAY


def _unit_range(unit: str, today: date, offset: int) -> DateRange:
    """Return the date range of the day, week or longer unit that lies `offset` units after the current one."""
    match unit:
        case "week":
            return _week_range(today, offset)
        case "weekend":
            monday, end = _week_range(today, offset)
            return monday + 5 * DAY, end
        case "month":
            return _month_range(today.year, today.month + offset)
        case "quarter":
            first = (today.month - 1) // 3 * 3 + 1 + 3 * offset
            return _month_range(today.year, first)[0], _month_range(today.year, first + 2)[1]
        case "year":
            return _year_range(today.year + offset)
        case _:
            return _day_range(today + offset * DAY)


_STEP_OFFSETS: Mapping[str, int] = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}
_NAMED_DAY_OFFSETS: Mapping[str, int] = {
    **{"today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0},
    **{"yesterday": -1, "last night": -1, "the day before yesterday": -2, "tomorrow": 1, "the day after tomorrow": 2},
}


def _resolve_named_day(match: Match, today: date) -> DateRange:
    return _day_range(today + _NAMED_DAY_OFFSETS[match["name"]] * DAY)


def _resolve_unit(match: Match, today: date) -> DateRange:
    return _unit_range(match["unit"], today, _STEP_OFFSETS[match["step"]])


def _read_count(match: Match) -> int:
    return int(match["count"]) if match["count"].isdigit() else _NUMBER_WORDS[match["count"]]


def _resolve_ago(match: Match, today: date) -> DateRange:
    """Return the range of an expression such as "3 weeks ago": the whole of that day, week, month or year."""
    return _unit_range(match["unit"], today, -_read_count(match))


def _resolve_last_count(match: Match, today: date) -> DateRange:
    """Return the range of an expression such as "the last 3 weeks": from the day 3 weeks ago until today, inclusive."""
    unit, count = match["unit"], _read_count(match)
    if unit in ("month", "year"):
        months = count * (12 if unit == "year" else 1)
        first, end = _month_range(today.year, today.month - months)
        return min(first + (today.day - 1) * DAY, end - DAY), today + DAY
    return today - count * (WEEK if unit == "week" else DAY), today + DAY


def _resolve_ahead(match: Match, today: date) -> DateRange:
    """Return the range of an expression such as "in 3 weeks": the whole of that day, week, month or year."""
    return _unit_range(match["unit"], today, _read_count(match))


def season_range(month: int, today: date, *, step: str | None = None, year: str | None = None) -> DateRange:
    """Return the range of the season of the north that begins in `month`: the latest that has begun, without a step."""
    if year or step == "this":
        return _season_of(int(year or today.year), month)
    seasons = [_season_of(one, month) for one in range(today.year - 2, today.year + 3)]
    if step == "next":
        return next(one for one in seasons if one[0] > today)
    return max(one for one in seasons if (one[1] if step == "last" else one[0]) <= today)


def _season_of(year: int, month: int) -> DateRange:
    return _month_range(year, month)[0], _month_range(year, month + 2)[1]


_STEP_NAMES: Mapping[int, str] = {-1: "last", 0: "this", 1: "next"}


def _resolve_season(match: Match, today: date) -> DateRange:
    groups, month = match.groupdict(), _SEASONS[match["season"]]
    step = _STEP_NAMES[_STEP_OFFSETS[groups["step"]]] if groups.get("step") else None
    return season_range(month, today, step=step, year=groups.get("year"))


def _resolve_next_season(match: Match, today: date) -> DateRange | None:
    groups = match.groupdict()
    return (
        None
        if groups.get("step") or groups.get("year")
        else season_range(_SEASONS[match["season"]], today, step="next")
    )


def _resolve_weekday(match: Match, today: date) -> DateRange:
    """Return the day that a weekday means: with "last" before today, with "next" after it, with "this" in this week.

    Without such a word it is today or the latest such day before.
    """
    weekday = ("mon", "tue", "wed", "thu", "fri", "sat", "sun").index(match["day"][:3])
    match match["step"] or "":
        case "last" | "previous" | "past":
            return _day_range(today - ((today.weekday() - weekday - 1) % 7 + 1) * DAY)
        case "next" | "coming":
            return _day_range(today + ((weekday - today.weekday() - 1) % 7 + 1) * DAY)
        case "this":
            return _day_range(_week_range(today, 0)[0] + weekday * DAY)
        case _:
            return _day_range(today - (today.weekday() - weekday) % 7 * DAY)


def _resolve_next_weekday(match: Match, today: date) -> DateRange | None:
    """Return today or the first later day that is this weekday; None with a word such as "last" or "next"."""
    last = _resolve_weekday(match, today)[0]
    return None if match["step"] else _day_range(last if last == today else last + WEEK)


def _resolve_month(match: Match, today: date) -> DateRange:
    groups, month = match.groupdict(), _month_number(match["month"])
    if groups.get("year"):
        return _month_range(int(match["year"]), month)
    offsets = {"last": -1 if month >= today.month else 0, "next": 1 if month <= today.month else 0, "this": 0}
    default = 0 if month <= today.month else -1
    return _month_range(today.year + offsets.get(groups.get("step") or "", default), month)


def _resolve_next_month(match: Match, today: date) -> DateRange | None:
    groups = match.groupdict()
    if groups.get("year") or groups.get("step"):
        return None
    month = _month_number(match["month"])
    return _month_range(today.year + (month < today.month), month)


def _resolve_date(match: Match, today: date) -> DateRange:
    month, day = _month_number(match["month"]), int(match["date"])
    if match["year"]:
        return _day_range(date(int(match["year"]), month, day))
    return _day_range(max(found for found in _same_day_in_years(month, day, today) if found <= today))


def _resolve_next_date(match: Match, today: date) -> DateRange | None:
    if match["year"]:
        return None
    month, day = _month_number(match["month"]), int(match["date"])
    return _day_range(min(found for found in _same_day_in_years(month, day, today) if found >= today))


def _same_day_in_years(month: int, day: int, today: date) -> Iterator[date]:
    """Yield the dates with this month and day from eight years before to eight years after, as far as they exist."""
    for year in range(today.year - 8, today.year + 9):
        with suppress(ValueError):
            yield date(year, month, day)


def _resolve_near_date(match: Match, today: date) -> DateRange:
    """Return the range of a unit before or after a date.

    "The week before 5 May" is the seven days before it; "2 weeks before 5 May", and other units, are whole calendar
    units.
    """
    day, unit, before = _resolve_date(match, today)[0], match["unit"], match["way"] == "before"
    if match["count"]:
        return _unit_range(unit, day, -_read_count(match) if before else _read_count(match))
    if unit == "week":
        return (day - WEEK, day) if before else (day + DAY, day + DAY + WEEK)
    return _unit_range(unit, day, -1 if before else 0 if unit == "weekend" and day.weekday() < 5 else 1)


def _month_number(name: str) -> int:
    return ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec").index(name[:3]) + 1


def _resolve_iso(match: Match, _: date) -> DateRange:
    day = date(int(match["year"]), int(match["month"]), int(match["date"] or 1))  # raises for month 13
    return _day_range(day) if match["date"] else _month_range(day.year, day.month)


def _resolve_year(match: Match, _: date) -> DateRange:
    return _year_range(int(match["year"]))


class _DatePattern(NamedTuple):
    """A pattern of date expressions, with the function that returns the date range of a match.

    The pattern is searched for only in texts that contain one of the `trigger_words`, which most texts do not.
    """

    pattern: str
    resolve: Callable[[Match, date], DateRange]
    trigger_words: frozenset[str]


_SIDES = "since|from|after|before|until|till|by"
_SIDE = rf"(?:(?P<side>{_SIDES})\s)?"
# A month, a year or a short weekday needs a preposition: "march" and "may" are words, and 2024 may be a price.
_LED = rf"(?:(?P<side>{_SIDES})|in|during)\s"
_STEPS = "last|previous|past|this|next|coming"
_DATE = r"(?P<date>\d\d?)(?:st|nd|rd|th)?"
_UNITS = "day|week|month|year"
_SEASONS: Mapping[str, int] = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON = f"(?P<season>{'|'.join(_SEASONS)})"
_DAY_FIRST = rf"(?:the )?{_DATE}(?: of)? (?P<month>{MONTHS})(?:,? (?P<year>{YEAR}))?"
_MONTH_FIRST = rf"(?P<month>{MONTHS}) (?:the )?{_DATE}(?:,? (?P<year>{YEAR}))?"
_NEAR_DATE = rf"(?:the|last|(?P<count>{_NUMBER})) (?P<unit>day|weekend|week|month|year)s? (?P<way>before|after) "


def _list_spellings(pattern: str) -> frozenset[str]:
    """Return every word that a pattern with alternatives and optional endings matches.

    >>> sorted(_list_spellings("tues?|thu(?:rs?)?"))
    ['thu', 'thur', 'thurs', 'tue', 'tues']
    """
    return frozenset(word for spelling in pattern.split("|") for word in _expand_optional(spelling))


def _expand_optional(spelling: str) -> Iterable[str]:
    base, bracket, rest = spelling.partition("(?:")
    if bracket:
        return {base, *(base + end for end in _expand_optional(rest.removesuffix(")?")))}
    return {spelling[:-2], spelling[:-1]} if spelling.endswith("?") else {spelling}


_NAMED_DAYS = "|".join(sorted(_NAMED_DAY_OFFSETS, key=len, reverse=True))
_NAMED_DAY_TRIGGERS = frozenset(
    {"today", "tonight", "yesterday", "tomorrow", "morning", "afternoon", "evening", "night"}
)
_YEAR_TRIGGERS = frozenset({"#"})  # stands for any year
_MONTH_TRIGGERS = _list_spellings(MONTHS)
_UNIT_TRIGGERS = frozenset({"week", "weekend", "month", "quarter", "year"})
_COUNT_TRIGGERS = frozenset({*_UNITS.split("|"), "days", "weeks", "months", "years"})

# Resolvers of expressions that may mean the next occurrence as well as the latest one.
_NEXT_RESOLVERS: Mapping[Callable[[Match, date], DateRange], Callable[[Match, date], DateRange | None]] = {
    _resolve_weekday: _resolve_next_weekday,
    _resolve_month: _resolve_next_month,
    _resolve_date: _resolve_next_date,
    _resolve_season: _resolve_next_season,
}


def _pattern(
    expression: str, resolve: Callable[[Match, date], DateRange], trigger_words: frozenset[str], lead: str = _SIDE
) -> _DatePattern:
    return _DatePattern(rf"(?<![\w-]){lead}{expression}(?![\w-])", resolve, trigger_words)


_PATTERNS = (
    _pattern(rf"(?P<name>{_NAMED_DAYS})", _resolve_named_day, _NAMED_DAY_TRIGGERS),
    _pattern(rf"(?:the )?(?P<step>{_STEPS}) (?P<unit>weekend|week|month|quarter|year)", _resolve_unit, _UNIT_TRIGGERS),
    _pattern(rf"(?:about )?(?P<count>{_NUMBER}) (?P<unit>{_UNITS})s? ago", _resolve_ago, frozenset({"ago"})),
    _pattern(rf"(?P<ahead>in (?:about )?)(?P<count>{_NUMBER}) (?P<unit>{_UNITS})s?", _resolve_ahead, _COUNT_TRIGGERS),
    _pattern(rf"(?P<count>{_NUMBER}) (?P<unit>{_UNITS})s? from (?:now|today)", _resolve_ahead, _COUNT_TRIGGERS),
    _pattern(rf"(?:in )?(?:the )?(?P<step>{_STEPS}) {_SEASON}", _resolve_season, frozenset(_SEASONS)),
    _pattern(rf"(?:the )?{_SEASON}(?: of)?(?: (?P<year>{YEAR}))?", _resolve_season, frozenset(_SEASONS), lead=_LED),
    _pattern(
        rf"(?:(?:in|over|within) )?(?:the )?(?:last|past) (?P<count>{_NUMBER}) (?P<unit>{_UNITS})s?",
        _resolve_last_count,
        _COUNT_TRIGGERS,
    ),
    _pattern(rf"{_NEAR_DATE}{_DAY_FIRST}", _resolve_near_date, _MONTH_TRIGGERS),
    _pattern(rf"{_NEAR_DATE}{_MONTH_FIRST}", _resolve_near_date, _MONTH_TRIGGERS),
    _pattern(rf"(?:on )?(?:(?P<step>{_STEPS}) )?(?P<day>{_WEEKDAYS})", _resolve_weekday, _list_spellings(_WEEKDAYS)),
    _pattern(
        rf"(?:(?P<side>{_SIDES})|on|(?P<step>{_STEPS}))\s(?P<day>{_SHORT_WEEKDAYS})",
        _resolve_weekday,
        _list_spellings(_SHORT_WEEKDAYS),
        lead="",
    ),
    _pattern(rf"(?:in )?(?P<step>last|this|next) (?P<month>{MONTHS})", _resolve_month, _MONTH_TRIGGERS),
    _pattern(rf"(?:in |during )?(?P<month>{MONTHS}),? (?P<year>{YEAR})", _resolve_month, _MONTH_TRIGGERS),
    _pattern(rf"(?:on )?{_DAY_FIRST}", _resolve_date, _MONTH_TRIGGERS),
    _pattern(rf"(?:on )?{_MONTH_FIRST}", _resolve_date, _MONTH_TRIGGERS),
    _pattern(rf"(?:on )?(?P<year>{YEAR})-(?P<month>\d\d)(?:-(?P<date>\d\d))?", _resolve_iso, _YEAR_TRIGGERS),
    _pattern(rf"(?P<month>{MONTHS})", _resolve_month, _MONTH_TRIGGERS, lead=_LED),
    _pattern(rf"(?P<year>{YEAR})", _resolve_year, _YEAR_TRIGGERS, lead=_LED),
)
_TRIGGER_WORDS = frozenset(word for pattern in _PATTERNS for word in pattern.trigger_words)
