"""Date expressions in other languages than English, by the tables of each language. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from newton.text.english_dates import DateRange, season_range
from newton.text.languages import LanguageData, load_language

DAY = timedelta(days=1)
WEEK = 7 * DAY
_STEP_OFFSETS = {"last": -1, "this": 0, "next": 1}
_CHINESE_DIGITS = "〇一二三四五六七八九"
_YEAR = r"(?:19|20)\d\d"


@dataclass(frozen=True, slots=True)
class DateMatch:
    """A date expression in a text. It has the methods of `re.Match` that are used for English ones.

    `side` is the English preposition that says which side of the date is meant: since, until, before or after.
    """

    match: "re.Match[str]"
    side: str | None

    @property
    def string(self) -> str:
        return self.match.string

    def start(self) -> int:
        return self.match.start()

    def end(self) -> int:
        return self.match.end()

    def __getitem__(self, key: int | str) -> str | Any:
        return self.side if key == "side" else self.match[0]


def find_dates_in(text: str, today: date, code: str) -> Iterator[tuple[DateMatch, tuple[DateRange, ...]]]:
    """Yield the date expressions of a lower-case text in the language `code`, with the date ranges that each may mean.

    The first range is the latest that has begun; a weekday or a date without a year has the next one as a second.

    >>> [(match[0], str(days[0][0])) for match, days in find_dates_in("was war letzte woche?", date(2026, 3, 18), "de")]
    [('letzte woche', '2026-03-09')]
    """
    tables = _load_tables(code)
    if not tables.trigger.search(text):
        return
    for pattern, resolve in tables.patterns:
        for match in pattern.finditer(text):
            with suppress(ValueError, OverflowError, KeyError):  # the 31st of February
                ranges = resolve(_DateReading(match, tables, today))
                yield DateMatch(match, _read_side(match)), tuple(dict.fromkeys(ranges))


class _DateTables(NamedTuple):
    """The patterns of dates in one language, each with the function that returns the range of a match.

    Every date expression contains `trigger`.
    """

    data: LanguageData
    months: Sequence[re.Pattern[str]]
    weekdays: Sequence[re.Pattern[str]]
    units: Mapping[str, re.Pattern[str]]
    patterns: Sequence[tuple[re.Pattern[str], "_Resolver"]]
    trigger: re.Pattern[str]


class _DateReading(NamedTuple):
    """A match of a date pattern, with the tables of its language and the current date. Its properties are its parts."""

    match: "re.Match[str]"
    tables: _DateTables
    today: date

    def has(self, name: str) -> bool:
        return self.match.groupdict().get(name) is not None

    @property
    def unit(self) -> str:
        return next(name for name, one in self.tables.units.items() if one.fullmatch(self.match["unit"]))

    @property
    def unit_count(self) -> int:
        text = self.match.groupdict().get("count") or "1"
        return int(text) if text.isdigit() else self.tables.data.dates["numbers"][text]

    @property
    def day(self) -> int:
        return _read_number(self.match["day"])

    @property
    def month(self) -> int:
        if self.has("number"):
            return int(self.match["number"])
        return 1 + next(n for n, one in enumerate(self.tables.months) if one.fullmatch(self.match["month"]))

    @property
    def weekday(self) -> int:
        return next(n for n, one in enumerate(self.tables.weekdays) if one.fullmatch(self.match["weekday"]))

    @property
    def step(self) -> str | None:
        return next((name for name in _STEP_OFFSETS if self.has(name)), "next" if self.has("next_mark") else None)


_Resolver: TypeAlias = Callable[[_DateReading], Sequence[DateRange]]


def _read_number(text: str) -> int:
    """Return a number up to 99 in digits or in Chinese characters."""
    if text.isdigit():
        return int(text)
    tens, mark, ones = text.rpartition("十")
    digit = _CHINESE_DIGITS.index
    return 10 * ((digit(tens) if tens else 1) if mark else 0) + (digit(ones) if ones else 0)


def _read_side(match: "re.Match[str]") -> str | None:
    groups = match.groupdict()
    return next((name for name in ("since", "until", "before", "after") if groups.get(f"side_{name}")), None)


def _day_range(day: date) -> DateRange:
    return day, day + DAY


def _month_range(year: int, month: int) -> DateRange:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _unit_range(unit: str, today: date, offset: int) -> DateRange:
    match unit:
        case "week":
            monday = today - today.weekday() * DAY + offset * WEEK
            return monday, monday + WEEK
        case "month":
            return _month_range(today.year, today.month + offset)
        case "year":
            return date(today.year + offset, 1, 1), date(today.year + offset + 1, 1, 1)
        case _:
            return _day_range(today + offset * DAY)


def _resolve_named_day(reading: _DateReading) -> Sequence[DateRange]:
    return [_day_range(reading.today + reading.tables.data.dates["days"][reading.match["name"]] * DAY)]


def _resolve_step_unit(reading: _DateReading) -> Sequence[DateRange]:
    return [_unit_range(reading.unit, reading.today, _STEP_OFFSETS[reading.step or "this"])]


def _resolve_ago(reading: _DateReading) -> Sequence[DateRange]:
    return [_unit_range(reading.unit, reading.today, -reading.unit_count)]


def _resolve_ahead(reading: _DateReading) -> Sequence[DateRange]:
    return [_unit_range(reading.unit, reading.today, reading.unit_count)]


def _resolve_season(reading: _DateReading) -> Sequence[DateRange]:
    """Return the range of a season, which without "last" and the like may be the next one too."""
    data, today = reading.tables.data.dates["seasons"], reading.today
    month = next(n for n, words in data.items() if re.fullmatch(words, reading.match["season"]))
    if reading.step and not reading.tables.data.is_spaced:  # "last year's spring"
        return [season_range(month, today, year=str(today.year + _STEP_OFFSETS[reading.step]))]
    if reading.step:
        return [season_range(month, today, step=reading.step)]
    return [season_range(month, today), season_range(month, today, step="next")]


def _resolve_last_count(reading: _DateReading) -> Sequence[DateRange]:
    today = reading.today
    if reading.unit in ("month", "year"):
        first, end = _month_range(today.year, today.month - reading.unit_count * (12 if reading.unit == "year" else 1))
        return [(min(first + (today.day - 1) * DAY, end - DAY), today + DAY)]
    return [(today - reading.unit_count * (WEEK if reading.unit == "week" else DAY), today + DAY)]


def _resolve_step_day(reading: _DateReading) -> Sequence[DateRange]:
    """Return the day of a weekday. In Chinese and Japanese, "last" and "next" are of the week, elsewhere of the day."""
    today, weekday = reading.today, reading.weekday
    if reading.step and (reading.step == "this" or not reading.tables.data.is_spaced):
        return [_day_range(_unit_range("week", today, _STEP_OFFSETS[reading.step])[0] + weekday * DAY)]
    if reading.step == "last":
        return [_day_range(today - ((today.weekday() - weekday - 1) % 7 + 1) * DAY)]
    if reading.step == "next":
        return [_day_range(today + ((weekday - today.weekday() - 1) % 7 + 1) * DAY)]
    last = today - (today.weekday() - weekday) % 7 * DAY
    return [_day_range(last), _day_range(last if last == today else last + WEEK)]


def _resolve_date(reading: _DateReading) -> Sequence[DateRange]:
    if reading.has("year"):
        return [_day_range(date(int(reading.match["year"]), reading.month, reading.day))]
    days = list[date]()
    for year in range(reading.today.year - 8, reading.today.year + 9):
        with suppress(ValueError):
            days.append(date(year, reading.month, reading.day))
    last = max(day for day in days if day <= reading.today)
    return [_day_range(last), _day_range(min(day for day in days if day >= reading.today))]


def _resolve_month(reading: _DateReading) -> Sequence[DateRange]:
    month, today = reading.month, reading.today
    if reading.has("year"):
        return [_month_range(int(reading.match["year"]), month)]
    last, coming = today.year - (month > today.month), today.year + (month < today.month)
    return [_month_range(last, month), _month_range(coming, month)]


def _resolve_year(reading: _DateReading) -> Sequence[DateRange]:
    year = int(reading.match["year"])
    return [(date(year, 1, 1), date(year + 1, 1, 1))]


_RESOLVERS: Mapping[str, _Resolver] = {
    "step_unit": _resolve_step_unit,
    "ago": _resolve_ago,
    "ahead": _resolve_ahead,
    "last_count": _resolve_last_count,
    "season": _resolve_season,
    "step_day": _resolve_step_day,
    "date": _resolve_date,
    "numeric": _resolve_date,
    "month": _resolve_month,
    "in_year": _resolve_year,
}


@cache
def _load_tables(code: str) -> _DateTables:
    """Return the compiled date patterns of a language. Compiling takes some milliseconds, once for each process."""
    data = load_language(code)
    tables, parts = data.dates, _list_parts(data)
    left, right = (r"(?<![\w-])", r"(?![\w-])") if data.is_spaced else ("", "")
    days: list[str] = sorted(tables["days"], key=len, reverse=True)
    names = "|".join(map(re.escape, days))
    blocked = f"(?<!{')(?<!'.join(_list_blocked(tables))})" if _list_blocked(tables) else ""
    sides = "".join(f"(?P<side_{name}>{words})|" for name, words in tables["sides"].items())
    gap = r"\s(?:dem |den |der |die |das |le |la |el |il |lo |the |de |het )?" if data.is_spaced else ""
    lead = rf"(?:(?:{sides.rstrip('|')}){gap})?" if sides else ""
    patterns: list[tuple[re.Pattern[str], _Resolver]] = [
        (re.compile(f"{left}{lead}{blocked}(?P<name>{names}){right}"), _resolve_named_day)
    ]
    for name, resolve in _RESOLVERS.items():
        for template in tables.get(name, ()):
            body = re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], template)
            patterns.append((re.compile(f"{left}{lead}{body}{right}"), resolve))
    listed = (*tables["months"], *tables["weekdays"], *tables["seasons"].values(), *tables["units"].values())
    trigger = "|".join((names, *listed, _YEAR, r"\d[./-]\d"))
    return _DateTables(
        data=data,
        months=[re.compile(one) for one in tables["months"]],
        weekdays=[re.compile(one) for one in tables["weekdays"]],
        units={name: re.compile(one) for name, one in tables["units"].items()},
        patterns=patterns,
        trigger=re.compile(trigger),
    )


def _list_blocked(tables: Mapping[str, str]) -> list[str]:
    """Return the words that stand before the name of a day where it means something else, as in "jeden Morgen"."""
    phrases = tables.get("not_days", "").split("|") if tables.get("not_days") else []
    return [f"{phrase.rpartition(' ')[0]} " for phrase in phrases]


def _list_parts(data: LanguageData) -> Mapping[str, str]:
    """Return the named parts of date patterns in a language, such as `month`, as regular expressions."""
    tables = data.dates
    words: list[str] = sorted(tables["numbers"], key=len, reverse=True)
    numbers = "|".join((r"\d{1,3}", *words))
    steps = {name: f"(?P<{name}>{words})" for name, words in tables["steps"].items()}
    day = r"\d{1,2}" if data.is_spaced else r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
    return {
        **steps,
        "step": f"(?:{'|'.join(steps.values())})",
        "count": f"(?P<count>{numbers})",
        "unit": f"(?P<unit>{'|'.join(tables['units'].values())})",
        "day": f"(?P<day>{day})",
        "month": f"(?P<month>{'|'.join(tables['months'])})",
        "number": r"(?P<number>\d{1,2})",
        "season": f"(?P<season>{'|'.join(tables['seasons'].values())})",
        "weekday": f"(?P<weekday>{'|'.join(tables['weekdays'])})",
        "year": f"(?P<year>{_YEAR})",
    }
