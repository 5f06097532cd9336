"""Times that a text speaks of (yesterday, in March, since Monday, 2024-05-06) as spans of the calendar. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeAlias

Days: TypeAlias = tuple[date, date]  # the first, and the one behind the last
Match: TypeAlias = re.Match[str]

DAY = timedelta(days=1)
WEEK = 7 * DAY
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_WEEKDAYS = "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_NUMBERS: Mapping[str, int] = {
    **{
        "a": 1,
        "an": 1,
        "one": 1,
        "two": 2,
        "a couple of": 2,
        "three": 3,
        "a few": 3,
        "four": 4,
        "five": 5,
        "several": 5,
    },
    **{"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12},
}
_NUMBER = "|".join((r"\d{1,3}", *sorted(_NUMBERS, key=len, reverse=True)))
_YEAR = r"(?:19|20)\d\d"


class Span(NamedTuple):
    """A stretch of time as it is said: from `start` up to, not including, `end`. None is open on that side."""

    words: str
    start: datetime | None
    end: datetime | None


def spans(text: str, *, now: datetime) -> list[Span]:
    """The times a text speaks of, in their order, read as at `now` and in its zone. What is no date is left out.

    `now` is the moment of whoever speaks: for a memory, the memory's own. A weekday or a month without a year is the
    latest one that has begun; weeks begin on Monday.
    """
    plain = " ".join(text.split()).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    taken = 0
    found: list[Span] = []
    for match, days in sorted(_dated(plain, now.date()), key=lambda hit: (hit[0].start(), -hit[0].end())):
        if match.start() >= taken:
            taken = match.end()
            found.append(_span(match, days, now))
    return found


def _dated(text: str, today: date) -> Iterator[tuple[Match, Days]]:
    for pattern, resolve in _READ:
        for match in pattern.finditer(text):
            try:
                yield match, resolve(match, today)
            except (ValueError, OverflowError):  # the 31st of February, a million years ago
                continue


def _span(match: Match, days: Days, now: datetime) -> Span:
    start, end = (datetime(day.year, day.month, day.day, tzinfo=now.tzinfo) for day in days)
    match match["side"]:
        case "since" | "from":
            return Span(match[0], start, now if start <= now else None)
        case "after":
            return Span(match[0], end, now if end <= now else None)
        case "before" | "until" | "till" | "by":
            return Span(match[0], None, start if match["side"] == "before" else end)
        case _:
            return Span(match[0], start, end)


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


def _month_named(match: Match, today: date) -> Days:
    said, month = match.groupdict(), _month_number(match["month"])
    if said.get("year"):
        return _month(int(match["year"]), month)
    ahead = {"last": -1 if month >= today.month else 0, "next": 1 if month <= today.month else 0, "this": 0}
    usual = 0 if month <= today.month else -1
    return _month(today.year + ahead.get(said.get("step") or "", usual), month)


def _date(match: Match, today: date) -> Days:
    month, day = _month_number(match["month"]), int(match["day"])
    if match["year"]:
        return _day(date(int(match["year"]), month, day))
    return _day(max(_dates(month, day, [today.year, today.year - 1, today.year - 4], not_after=today)))


def _dates(month: int, day: int, years: list[int], *, not_after: date) -> Iterator[date]:
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:  # the 29th of February of most years
            continue
        if found <= not_after:
            yield found


def _month_number(name: str) -> int:
    return ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec").index(name[:3]) + 1


def _iso(match: Match, _: date) -> Days:
    year, month = int(match["year"]), int(match["month"])
    return _day(date(year, month, int(match["day"]))) if match["day"] else _whole(year, month)


def _whole(year: int, month: int) -> Days:
    if not 1 <= month <= 12:
        raise ValueError(month)
    return _month(year, month)


def _year_named(match: Match, _: date) -> Days:
    return _year(int(match["year"]))


_SIDES = "since|from|after|before|until|till|by"
_SIDE = rf"(?:(?P<side>{_SIDES})\s)?"
_ALONE = (
    rf"(?:(?P<side>{_SIDES})|in|during)\s"  # a month or a year alone: one may march in May, and 2024 may be a price
)
_STEPS = "last|previous|past|this|next|coming"
_DAY = r"(?P<day>\d\d?)(?:st|nd|rd|th)?"
_UNITS = "day|week|month|year"


def _read(
    said: str, resolve: Callable[[Match, date], Days], lead: str = _SIDE
) -> tuple[re.Pattern[str], Callable[[Match, date], Days]]:
    return re.compile(rf"(?<![\w-]){lead}{said}(?![\w-])"), resolve


_READ = (
    _read(rf"(?P<name>{'|'.join(sorted(_NAMED, key=len, reverse=True))})", _by_name),
    _read(rf"(?:the )?(?P<step>{_STEPS}) (?P<unit>week|weekend|month|quarter|year)", _by_unit),
    _read(rf"(?:about )?(?P<count>{_NUMBER}) (?P<unit>{_UNITS})s? ago", _ago),
    _read(rf"(?:(?:in|over|within) )?(?:the )?(?:last|past) (?P<count>{_NUMBER}) (?P<unit>{_UNITS})s?", _lately),
    _read(rf"(?:on )?(?:(?P<step>{_STEPS}) )?(?P<day>{_WEEKDAYS})", _weekday),
    _read(rf"(?:in )?(?P<step>last|this|next) (?P<month>{_MONTHS})", _month_named),
    _read(rf"(?:in |during )?(?P<month>{_MONTHS}),? (?P<year>{_YEAR})", _month_named),
    _read(rf"(?:on )?(?:the )?{_DAY}(?: of)? (?P<month>{_MONTHS})(?:,? (?P<year>{_YEAR}))?", _date),
    _read(rf"(?:on )?(?P<month>{_MONTHS}) (?:the )?{_DAY}(?:,? (?P<year>{_YEAR}))?", _date),
    _read(rf"(?:on )?(?P<year>{_YEAR})-(?P<month>\d\d)(?:-(?P<day>\d\d))?", _iso),
    _read(rf"(?P<month>{_MONTHS})", _month_named, _ALONE),
    _read(rf"(?P<year>{_YEAR})", _year_named, _ALONE),
)
