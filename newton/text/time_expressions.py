"""Parsing of time expressions (yesterday, in March, since Monday, 2024-05-06) into time ranges. Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from newton.text.dates import DateMatch, find_dates_in
from newton.text.english_dates import DAY, MONTHS, YEAR, DateRange, find_dates
from newton.text.english_dates import Match as EnglishMatch
from newton.text.languages import ENGLISH, detect_language

MAX_RANGE = 366 * DAY  # a longer mentioned range is too vague to store
MAX_TIMES = 4  # of one text: each is searched for
MAX_CHARACTERS = 4_000  # of a text that are parsed

# Timestamps, and log lines that begin with one. They are ignored, because machines write them.
_CLOCK = r"[t ,]+(?:at )?\d\d:\d\d"
_TIMESTAMP = rf"(?:{YEAR}[-/]\d\d[-/]\d\d{_CLOCK}|(?:{MONTHS}) +\d\d?{_CLOCK}:\d\d)"
_NOT_AFTER_PREPOSITION = r"(?<!\bon )(?<!\bat )(?<!since )(?<!before )(?<!after )"
_LOG_TIMESTAMP = re.compile(
    rf"^[^\w\n]*{_TIMESTAMP}.*$|{_NOT_AFTER_PREPOSITION}\b{_TIMESTAMP}", re.MULTILINE | re.IGNORECASE
)
# Cues for the future and the past. Planning verbs are in the past tense but mean the future ("we booked a table").
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
# "The exam is on Friday" is about the next one, "the choir is on Fridays" and "the birthday is on 3 May" about each.
_COMING_CUE = re.compile(r"(?:\b(?:is|are)|'s)(?: only| already)?$")
# "We did it in two weeks" tells how long it took.
_DONE = re.compile(r"\b(?:was|were|did|had|took|ran|built|read|wrote|\w{2,}ed|times|once|twice)\b")
_RECURRENCE = re.compile(r"\b(?:every|each|birthdays?|anniversary|born|always|usually|annual\w*|mornings|evenings)\b")
_WHOLE_DATE = re.compile(rf"\b{YEAR}\b|{YEAR}年|\d[./]\d+[./]\d")
_MONTH = r"(?:[A-Z][a-z]{2} )?"
_RESOLVED = re.compile(rf" \({_MONTH}(?:\d\d? )?{_MONTH}(?:\d{{4}} )?(?:- (?:\d\d? )?{_MONTH})?\d{{4}}\)")


Match: TypeAlias = EnglishMatch | DateMatch


_LIMITS, _OPEN_SIDES = ("until", "till"), ("since", "from", "after")


class TimeRange(NamedTuple):
    """The time that a phrase of a text means, from `start` to before `end`. A bound of None is open."""

    phrase: str
    start: datetime | None
    end: datetime | None

    def contains(self, moment: datetime) -> bool:
        return (self.start is None or self.start <= moment) and (self.end is None or moment < self.end)


def find_time_ranges(text: str, *, now: datetime) -> list[TimeRange]:
    """Return the distinct times that a text mentions, at most MAX_TIMES, in order, relative to `now` and in its zone.

    Time stamps of logs are ignored. A weekday, or a month without a year, is the latest that has begun, or the next one
    if the sentence is about the future. Weeks begin on Monday.
    """
    return _deduplicate(_to_time_range(m.match, m.likely, now) for m in _find_mentions(text, now.date()))


def _deduplicate(ranges: Iterable[TimeRange]) -> list[TimeRange]:
    """Return the distinct ranges, at most MAX_TIMES, each with the phrase that mentions it first."""
    unique: dict[tuple[datetime | None, datetime | None], TimeRange] = {}
    for span in ranges:
        unique.setdefault((span.start, span.end), span)
    return list(unique.values())[:MAX_TIMES]


class _TimeMention(NamedTuple):
    """A date expression in a text, with the ranges that it may mean; the latest that has begun is first."""

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
    end = 0
    mentions: list[_TimeMention] = []
    code = detect_language(text)
    foreign = find_dates_in(plain, today, code) if code != ENGLISH else ()
    for match, days in sorted((*foreign, *find_dates(plain, today)), key=lambda hit: (hit[0].start(), -hit[0].end())):
        if match.start() >= end and not _is_duration(match):
            end = match.end()
            mentions.append(_TimeMention(match, days, _refers_to_future(match)))
    return mentions


def _refers_to_future(match: Match) -> bool | None:
    """Return whether the sentence around a date is about the future; None if its words show neither future nor past."""
    if match["side"] == "by":
        return True
    text = match.string
    start = max((text.rfind(mark, 0, match.start()) for mark in (". ", "! ", "? ", "; ")), default=-1) + 1
    end = _SENTENCE_END.search(text, match.end())
    sentence = text[start : end.start() if end else len(text)]
    if _FUTURE_CUES.search(sentence):
        return True
    return False if _PAST_CUES.search(sentence) and not _PLANNING_CUES.search(sentence) else None


def _is_duration(match: Match) -> bool:
    """Return whether the words are no date but the time that something took: "we did it in two weeks"."""
    if isinstance(match, DateMatch) or "ahead" not in match.groupdict() or not match["ahead"]:
        return False
    before = match.string[: match.start()].rpartition(". ")[2]
    return _DONE.search(before) is not None and _PLANNING_CUES.search(before) is None


def _is_coming(match: Match) -> bool:
    """Return whether a date stands behind "is", so that it means the next one."""
    before = match.string[: match.start()].rstrip()
    return match[0].startswith(("on ", "in ")) and _COMING_CUE.search(before) is not None


def resolve_dates(text: str, *, moment: datetime) -> str:
    """Return a text with the date behind each relative or partial one that is clear, as told at `moment`.

    Lines that are indented stay as they are.

    >>> resolve_dates("My exam is next Friday, the party was last month.", moment=datetime(2026, 10, 2))
    'My exam is next Friday (Fri 9 Oct 2026), the party was last month (Sep 2026).'
    """
    if "\n" in text:
        return "\n".join([resolve_dates(line, moment=moment) for line in text.split("\n")])
    plain = _normalize(text)
    if len(plain) != len(text) or _RECURRENCE.search(plain):
        return text
    parts, start = list[str](), 0
    for mention in _find_mentions(text, moment.date())[:MAX_TIMES]:
        match, is_clear = mention.match, len(mention.possible) == 1
        if match.string != plain or _WHOLE_DATE.search(match[0]) or not (is_clear or _is_coming(match)):
            continue
        days = mention.likely if is_clear else mention.candidates[-1]
        parts += [text[start : match.end()], f" ({format_days(days)})"]
        start = match.end()
    return "".join([*parts, text[start:]])


def move_to_day(moment: datetime, day: str | None) -> datetime:
    """Return the same moment in a time zone in which it is of that day, so that "tomorrow" is the day after it.

    >>> str(move_to_day(datetime.fromisoformat("2026-11-09 22:30+00:00"), "2026-11-10"))
    '2026-11-10 00:30:00+02:00'
    """
    shift = (date.fromisoformat(day) - moment.date()).days if day else 0
    if not shift:
        return moment
    hours = min(24 - moment.hour, 23) if shift > 0 else -moment.hour - 1
    return moment.astimezone(timezone(timedelta(hours=hours)))


def remove_resolved_dates(text: str) -> str:
    """Return the text without the dates that `resolve_dates` adds.

    >>> remove_resolved_dates("My exam is next Friday (Fri 9 Oct 2026).")
    'My exam is next Friday.'
    """
    return _RESOLVED.sub("", text) if "(" in text else text


def format_days(days: DateRange) -> str:
    """Format a range of days as briefly as it is clear: a day with its weekday, a month, a year, or both ends.

    >>> [format_days((date(2026, *a), date(2026, *b))) for a, b in (((5, 1), (6, 1)), ((5, 4), (5, 11)))]
    ['May 2026', '4 - 10 May 2026']
    """
    first, last = days[0], days[1] - DAY
    if first == last:
        return f"{first:%a} {first.day} {first:%b %Y}"
    if first.day == 1 and days[1].day == 1:
        if first.month == 1 and last.month == 12:
            return f"{first:%Y}"
        if (first.year, first.month) == (last.year, last.month):
            return f"{first:%b %Y}"
        return f"{first:%b} - {last:%b %Y}" if first.year == last.year else f"{first:%b %Y} - {last:%b %Y}"
    begin = f"{first.day}" if first.month == last.month else f"{first.day} {first:%b}"
    return f"{begin if first.year == last.year else f'{begin} {first.year}'} - {last.day} {last:%b %Y}"


def remove_times(text: str, ranges: Iterable[TimeRange]) -> str:
    """Return the text in lower case without the phrases of the time ranges.

    >>> remove_times("What broke last week?", find_time_ranges("What broke last week?", now=datetime(2024, 5, 15)))
    'what broke ?'
    """
    rest = _normalize(text)
    for span in ranges:
        rest = rest.replace(span.phrase, "")
    return rest


@lru_cache(maxsize=64)
def _normalize(text: str) -> str:
    return " ".join(text.split()).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def is_of_times(text: str, ranges: Sequence[TimeRange], *, moment: datetime) -> bool:
    """Return whether a statement told at `moment` is of a range: by the times that it mentions, else by `moment`.

    >>> october = find_time_ranges("in October", now=datetime(2026, 11, 10))
    >>> texts = "I painted the fence.", "I paint the fence next week.", "I painted the fence in November."
    >>> [is_of_times(text, october, moment=datetime(2026, 10, 28)) for text in texts]
    [True, False, False]
    """
    days = [days for mention in _find_mentions(text, moment.date()) for days in mention.possible]
    spans = [tuple(_start_of(day, moment) for day in one) for one in days] or [(moment, moment + timedelta(seconds=1))]
    return any(
        (asked.end is None or start < asked.end) and (asked.start is None or asked.start < end)
        for start, end in spans
        for asked in ranges
    )


def find_mentioned_times(text: str, *, moment: datetime) -> tuple[TimeRange, ...]:
    """Return the times that the text of a memory mentions, except for the time `moment` of the memory itself.

    A day without a year counts as both the last and the next one, unless the sentence shows which is meant.

    >>> [span] = find_mentioned_times("I saw her last Friday.", moment=datetime(2023, 5, 8))
    >>> span.phrase, str(span.start)[:10]
    ('last friday', '2023-05-05')
    """
    mentions = _find_mentions(text, moment.date())
    ranges = [_mentioned_range(mention.match, days, moment) for mention in mentions for days in mention.possible]
    other = [r for r in ranges if r.start and r.end and r.end - r.start <= MAX_RANGE and not r.contains(moment)]
    return tuple(_deduplicate(other))


def find_last_end(text: str, *, moment: datetime, only_limits: bool = False) -> datetime | None:
    """Return when the times are over at the latest that a text of `moment` mentions; None without, or with an open one.

    With `only_limits`, only times count that say how long something lasts, as "until Friday" does.

    >>> told = datetime(2026, 11, 30)
    >>> [str(find_last_end(one, moment=told))[:10] for one in ("I fly on 3 May.", "I work since May.", "I like tea.")]
    ['2027-05-04', 'None', 'None']
    >>> str(find_last_end("I'm off until Friday, we met in March.", moment=told, only_limits=True))[:10]
    '2026-12-05'
    """
    mentions = [one for one in _find_mentions(text, moment.date()) if not only_limits or one.match["side"] in _LIMITS]
    if any(one.match["side"] in _OPEN_SIDES for one in mentions):
        return None
    return max((_start_of(days[1], moment) for one in mentions for days in one.candidates), default=None)


def _mentioned_range(match: Match, days: DateRange, moment: datetime) -> TimeRange:
    """Return the time range of a mention. "By Friday" means that day only."""
    return _closed_range(match, days, moment) if match["side"] == "by" else _to_time_range(match, days, moment)


def _closed_range(match: Match, days: DateRange, now: datetime) -> TimeRange:
    return TimeRange(match[0], *(_start_of(day, now) for day in days))


def _start_of(day: date, moment: datetime) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=moment.tzinfo)


def _to_time_range(match: Match, days: DateRange, now: datetime) -> TimeRange:
    """Return the time that a date expression means, with open bounds for words such as "since" and "before"."""
    _, start, end = _closed_range(match, days, now)
    assert start and end, "date ranges have both bounds"
    match match["side"]:
        case "since":
            return TimeRange(match[0], start, None)
        case "from":  # "a photo from last week" is of that week; "from tomorrow" is open
            return TimeRange(match[0], start, end if start <= now else None)
        case "after":
            return TimeRange(match[0], end, None)
        case "before" | "until" | "till" | "by":
            return TimeRange(match[0], None, start if match["side"] == "before" else end)
        case _:
            return TimeRange(match[0], start, end)
