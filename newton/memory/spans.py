"""Times that a text speaks of (yesterday, in March, since Monday, 2024-05-06) as spans of the calendar. Pure."""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import NamedTuple

from newton.memory.dates import DAY, MONTHS, YEAR, Days, Match, dated

LONGEST = 366 * DAY  # what a memory speaks of is kept up to a year: of more, it tells next to nothing
MOST = 4  # times of one text; more are a list of dates, and each is searched for
MOST_CHARACTERS = 4_000  # of a text that are read

# A day with a clock behind it is written by a machine, and a line that begins so is of its log: nobody asks for either.
_CLOCK = r"[t ,]+(?:at )?\d\d:\d\d"
_STAMP = rf"(?:{YEAR}[-/]\d\d[-/]\d\d{_CLOCK}|(?:{MONTHS}) +\d\d?{_CLOCK}:\d\d)"
_UNSAID = r"(?<!\bon )(?<!\bat )(?<!since )(?<!before )(?<!after )"
_LOGGED = re.compile(rf"^[^\w\n]*{_STAMP}.*$|{_UNSAID}\b{_STAMP}", re.MULTILINE | re.IGNORECASE)
# What is still to come, and what is over. Who arranges something speaks of the past and means what is to come.
_TO_COME = re.compile(
    r"\b(?:will|won't|shall|(?:is|are|am|be)(?: \w+)? (?:due|going to)|plan(?:s|ned|ning)?|upcoming|due|deadline)\b"
    r"|\b(?:i|we|you|he|she|they|it|that|there|who|what)'ll\b|(?:'m|'re|'s) going to\b"
)
_OVER = re.compile(
    r"\b(?:i|we|he|she|they|you|it)(?: just| also| only| never| \w+ly)? (?:was|were|did|didn't|had|went|saw|came|got"
    r"|met|took|made|gave|ate|ran|won|lost|left|told|spoke|\w+ed)\b|\bdid (?:i|we|he|she|they|you|it)\b"
)
_ARRANGING = re.compile(
    r"\b(?:book|schedul|arrang|reserv|postpon|agre|decid|invit|promis|want|need|expect|hop|confirm)e?d\b"
    r"|\b(?:moved|shifted) (?:the|my|our|his|her|their|it|that|this)\b"
)
_SENTENCE_END = re.compile(r"[.!?;]\s|$")


class Span(NamedTuple):
    """A stretch of time as it is said: from `start` up to, not including, `end`. None is open on that side."""

    words: str
    start: datetime | None
    end: datetime | None

    def holds(self, at: datetime) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


def spans(text: str, *, now: datetime) -> list[Span]:
    """The times a text asks for, in their order, each once, read as at `now` and in its zone; no more than `MOST`. What
    is no date is left out, and so is what a machine has written.

    A weekday or a month without a year is the latest one that has begun, or the next one where the sentence speaks of
    what is to come; weeks begin on Monday.
    """
    told = [_span(one.match, one.likely, now) for one in _told(text, now.date())]
    return _once(told)


def _once(told: Iterable[Span]) -> list[Span]:
    """Each time under the first of its names."""
    once: dict[tuple[datetime | None, datetime | None], Span] = {}
    for span in told:
        once.setdefault((span.start, span.end), span)
    return list(once.values())[:MOST]


class _Told(NamedTuple):
    """A time as it stands in a text, and the days that it may mean, the latest that has begun first. `ahead` says
    whether its sentence speaks of what is to come, or of what is over; None when it does not say."""

    match: Match
    meant: tuple[Days, ...]
    ahead: bool | None

    @property
    def likely(self) -> Days:
        return self.meant[-1] if self.ahead else self.meant[0]

    @property
    def possible(self) -> tuple[Days, ...]:
        return self.meant if self.ahead is None else (self.likely,)


def _told(text: str, today: date) -> list[_Told]:
    plain = _plain(_LOGGED.sub(" ", text)[:MOST_CHARACTERS])
    taken = 0
    told: list[_Told] = []
    for match, days in sorted(dated(plain, today), key=lambda hit: (hit[0].start(), -hit[0].end())):
        if match.start() >= taken:
            taken = match.end()
            told.append(_Told(match, days, _ahead(match)))
    return told


def _ahead(match: Match) -> bool | None:
    if match["side"] == "by":
        return True
    text = match.string
    start = max((text.rfind(mark, 0, match.start()) for mark in (". ", "! ", "? ", "; ")), default=-1) + 1
    end = _SENTENCE_END.search(text, match.end())
    sentence = text[start : end.start() if end else len(text)]
    if _TO_COME.search(sentence):
        return True
    return False if _OVER.search(sentence) and not _ARRANGING.search(sentence) else None


def without(text: str, times: Iterable[Span]) -> str:
    """What a text says beside those of its times, in lower case.

    >>> without("What broke last week?", spans("What broke last week?", now=datetime(2024, 5, 15)))
    'what broke ?'
    """
    rest = _plain(text)
    for span in times:
        rest = rest.replace(span.words, "")
    return rest


def _plain(text: str) -> str:
    return " ".join(text.split()).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def spoken_of(text: str, *, at: datetime) -> tuple[Span, ...]:
    """The times other than its own that a memory of that moment speaks of, and from when until when each was. A day
    without a year is both the last and the next one, unless its sentence says which.

    >>> [(span.words, str(span.start)[:10]) for span in spoken_of("I saw her last Friday.", at=datetime(2023, 5, 8))]
    [('last friday', '2023-05-05')]
    """
    told = [_spoken(one.match, days, at) for one in _told(text, at.date()) for days in one.possible]
    kept = [s for s in told if s.start and s.end and s.end - s.start <= LONGEST and not s.holds(at)]
    return tuple(_once(kept))


def _spoken(match: Match, days: Days, at: datetime) -> Span:
    """What is to be done by a day is of that day."""
    return _between(match, days, at) if match["side"] == "by" else _span(match, days, at)


def _between(match: Match, days: Days, now: datetime) -> Span:
    start, end = (datetime(day.year, day.month, day.day, tzinfo=now.tzinfo) for day in days)
    return Span(match[0], start, end)


def _span(match: Match, days: Days, now: datetime) -> Span:
    _, start, end = _between(match, days, now)
    assert start and end, "days are never open"
    match match["side"]:
        case "since":
            return Span(match[0], start, None)
        case "from":  # a photo from last week is of that week; from tomorrow on, there is no end yet
            return Span(match[0], start, end if start <= now else None)
        case "after":
            return Span(match[0], end, None)
        case "before" | "until" | "till" | "by":
            return Span(match[0], None, start if match["side"] == "before" else end)
        case _:
            return Span(match[0], start, end)
