"""Times that a text speaks of (yesterday, in March, since Monday, 2024-05-06) as spans of the calendar. Pure."""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import NamedTuple

from newton.memory.dates import DAY, MONTHS, YEAR, DateRange, Match, find_dates

MAX_RANGE = 366 * DAY  # what a memory speaks of is kept up to a year: of more, it tells next to nothing
MAX_TIMES = 4  # times of one text; more are a list of dates, and each is searched for
MAX_CHARACTERS = 4_000  # of a text that are read

# A day with a clock behind it is written by a machine, and a line that begins so is of its log: nobody asks for either.
_CLOCK = r"[t ,]+(?:at )?\d\d:\d\d"
_TIMESTAMP = rf"(?:{YEAR}[-/]\d\d[-/]\d\d{_CLOCK}|(?:{MONTHS}) +\d\d?{_CLOCK}:\d\d)"
_NOT_AFTER_PREPOSITION = r"(?<!\bon )(?<!\bat )(?<!since )(?<!before )(?<!after )"
_LOG_TIMESTAMP = re.compile(
    rf"^[^\w\n]*{_TIMESTAMP}.*$|{_NOT_AFTER_PREPOSITION}\b{_TIMESTAMP}", re.MULTILINE | re.IGNORECASE
)
# What is still to come, and what is over. Who arranges something speaks of the past and means what is to come.
_FUTURE_CUES = re.compile(
    r"\b(?:will|won't|shall|(?:is|are|am|be)(?: \w+)? (?:due|going to)|plan(?:s|ned|ning)?|upcoming|due|deadline)\b"
    r"|\b(?:i|we|you|he|she|they|it|that|there|who|what)'ll\b|(?:'m|'re|'s) going to\b"
)
_PAST_CUES = re.compile(
    r"\b(?:i|we|he|she|they|you|it)(?: just| also| only| never| \w+ly)? (?:was|were|did|didn't|had|went|saw|came|got"
    r"|met|took|made|gave|ate|ran|won|lost|left|told|spoke|\w+ed)\b|\bdid (?:i|we|he|she|they|you|it)\b"
)
_PLANNING_CUES = re.compile(
    r"\b(?:book|schedul|arrang|reserv|postpon|agre|decid|invit|promis|want|need|expect|hop|confirm)e?d\b"
    r"|\b(?:moved|shifted) (?:the|my|our|his|her|their|it|that|this)\b"
)
_SENTENCE_END = re.compile(r"[.!?;]\s|$")


class TimeRange(NamedTuple):
    """A stretch of time as it is said: from `start` up to, not including, `end`. None is open on that side."""

    phrase: str
    start: datetime | None
    end: datetime | None

    def contains(self, moment: datetime) -> bool:
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)


def find_time_ranges(text: str, *, now: datetime) -> list[TimeRange]:
    """The times a text asks for, in their order, each once, read as at `now` and in its zone; no more than `MOST`. What
    is no date is left out, and so is what a machine has written.

    A weekday or a month without a year is the latest one that has begun, or the next one where the sentence speaks of
    what is to come; weeks begin on Monday.
    """
    told = [_to_time_range(one.match, one.likely, now) for one in _find_mentions(text, now.date())]
    return _deduplicate(told)


def _deduplicate(ranges: Iterable[TimeRange]) -> list[TimeRange]:
    """Each time under the first of its names."""
    once: dict[tuple[datetime | None, datetime | None], TimeRange] = {}
    for span in ranges:
        once.setdefault((span.start, span.end), span)
    return list(once.values())[:MAX_TIMES]


class _TimeMention(NamedTuple):
    """A time as it stands in a text, and the days that it may mean, the latest that has begun first. `ahead` says
    whether its sentence speaks of what is to come, or of what is over; None when it does not say."""

    match: Match
    candidates: tuple[DateRange, ...]
    is_future: bool | None

    @property
    def likely(self) -> DateRange:
        return self.candidates[-1] if self.is_future else self.candidates[0]

    @property
    def possible(self) -> tuple[DateRange, ...]:
        return self.candidates if self.is_future is None else (self.likely,)


def _find_mentions(text: str, today: date) -> list[_TimeMention]:
    plain = _normalize(_LOG_TIMESTAMP.sub(" ", text)[:MAX_CHARACTERS])
    taken = 0
    told: list[_TimeMention] = []
    for match, days in sorted(find_dates(plain, today), key=lambda hit: (hit[0].start(), -hit[0].end())):
        if match.start() >= taken:
            taken = match.end()
            told.append(_TimeMention(match, days, _refers_to_future(match)))
    return told


def _refers_to_future(match: Match) -> bool | None:
    if match["side"] == "by":
        return True
    text = match.string
    start = max((text.rfind(mark, 0, match.start()) for mark in (". ", "! ", "? ", "; ")), default=-1) + 1
    end = _SENTENCE_END.search(text, match.end())
    sentence = text[start : end.start() if end else len(text)]
    if _FUTURE_CUES.search(sentence):
        return True
    return False if _PAST_CUES.search(sentence) and not _PLANNING_CUES.search(sentence) else None


def remove_times(text: str, ranges: Iterable[TimeRange]) -> str:
    """What a text says beside those of its times, in lower case.

    >>> remove_times("What broke last week?", find_time_ranges("What broke last week?", now=datetime(2024, 5, 15)))
    'what broke ?'
    """
    rest = _normalize(text)
    for span in ranges:
        rest = rest.replace(span.phrase, "")
    return rest


def _normalize(text: str) -> str:
    return " ".join(text.split()).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def find_mentioned_times(text: str, *, moment: datetime) -> tuple[TimeRange, ...]:
    """The times other than its own that a memory of that moment speaks of, and from when until when each was. A day
    without a year is both the last and the next one, unless its sentence says which.

    >>> [(span.phrase, str(span.start)[:10]) for span in find_mentioned_times("I saw her last Friday.", moment=datetime(2023, 5, 8))]
    [('last friday', '2023-05-05')]
    """
    told = [
        _mentioned_range(one.match, days, moment)
        for one in _find_mentions(text, moment.date())
        for days in one.possible
    ]
    kept = [s for s in told if s.start and s.end and s.end - s.start <= MAX_RANGE and not s.contains(moment)]
    return tuple(_deduplicate(kept))


def _mentioned_range(match: Match, days: DateRange, moment: datetime) -> TimeRange:
    """What is to be done by a day is of that day."""
    return _closed_range(match, days, moment) if match["side"] == "by" else _to_time_range(match, days, moment)


def _closed_range(match: Match, days: DateRange, now: datetime) -> TimeRange:
    start, end = (datetime(day.year, day.month, day.day, tzinfo=now.tzinfo) for day in days)
    return TimeRange(match[0], start, end)


def _to_time_range(match: Match, days: DateRange, now: datetime) -> TimeRange:
    _, start, end = _closed_range(match, days, now)
    assert start and end, "days are never open"
    match match["side"]:
        case "since":
            return TimeRange(match[0], start, None)
        case "from":  # a photo from last week is of that week; from tomorrow on, there is no end yet
            return TimeRange(match[0], start, end if start <= now else None)
        case "after":
            return TimeRange(match[0], end, None)
        case "before" | "until" | "till" | "by":
            return TimeRange(match[0], None, start if match["side"] == "before" else end)
        case _:
            return TimeRange(match[0], start, end)
