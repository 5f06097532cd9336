"""When each job is due: the usual schedules, and the settings `[jobs.NAME]` that change them. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from newton.errors import ConfigError
from newton.runtime.jobs.triggers import (
    FIRST_SLOT,
    WEEKDAYS,
    CronSchedule,
    IntervalSchedule,
    JobSchedule,
    OffSchedule,
    daily,
    every_minutes,
    weekly,
)

SCHEDULES: dict[str, JobSchedule] = {
    "embed": every_minutes(2),
    "summarize": every_minutes(10),
    "extract": every_minutes(5),
    "summarize-lines": every_minutes(60),
    "reembed": every_minutes(10),
    "generalize": daily(3, 10),
    **{f"lifecycle-{kind}": daily(3, 20) for kind in ("fact", "episode", "procedure", "censor", "caps")},
    "lifecycle": OffSchedule("on request"),
    "remind": daily(7),
    "calibrate": daily(4),
    "verify": daily(4, 30),
    "retain": daily(3, 40),
    "check-vacuum": weekly("Sunday", 5),
}

MIN_INTERVAL = timedelta(seconds=30)  # the queue looks for due jobs every 15 seconds
MAX_JITTER_SECONDS = 6 * 3600
YEARS = range(1971, 3001)  # of start and end
HINT = (
    'Write in newton.toml, for example:  [jobs.remind]  cron = "30 7 * * mon-fri"  timezone = "Europe/Berlin"  or'
    '  every = "10 min". The fields are cron, every, timezone, jitter, start, end and enabled.'
)

_DAYS = tuple(day[:3].lower() for day in WEEKDAYS)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DURATION = re.compile(r"(\d{1,6})\s*(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNITS = {86_400: "day", 3_600: "hour", 60: "minute", 1: "second"}


def _parse_duration(value: object) -> timedelta:
    match = _DURATION.fullmatch(str(value).strip().lower())
    if match is None:
        raise ValueError(f"{str(value)[:40]!r} is no interval; write a number and s, min, h or d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2][0]])


def _parse_zone(value: object) -> tzinfo:
    try:
        return ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{str(value)[:40]!r} is no time zone; write a name such as Europe/Berlin or UTC") from None


class JobSettings(BaseModel):
    """The table `[jobs.NAME]` of one job. Without `cron` and `every`, the job keeps its usual times.

    `jitter` is the maximum delay of a run in seconds. `start` and `end` limit the times to a period.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    cron: str | None = None
    every: Annotated[timedelta, BeforeValidator(_parse_duration)] | None = None
    timezone: Annotated[tzinfo, BeforeValidator(_parse_zone)] = UTC
    jitter: int = Field(0, ge=0, le=MAX_JITTER_SECONDS)
    start: datetime | date | None = None
    end: datetime | date | None = None
    enabled: bool = True


def build_schedules(tables: Mapping[str, Any]) -> dict[str, JobSchedule]:
    """Return the schedule of each job, as the settings `[jobs.NAME]` change it.

    Raises ConfigError, with the remedy, for an unknown job and for an invalid field or cron expression.
    """
    schedules = dict(SCHEDULES)
    for name, table in tables.items():
        if name not in SCHEDULES:
            hint = f"Remove the table, or name another job: {', '.join(SCHEDULES)}."
            raise ConfigError(f"There is no job {name!r} to set in [jobs.{name}].", hint=hint)
        try:
            settings = JobSettings.model_validate(table)
            schedule = _build_schedule(settings, SCHEDULES[name])
            if schedule.next_slot(FIRST_SLOT - timedelta(seconds=1)) is None:
                raise ValueError("the times never come: no date matches, or none in the period from start to end")
            schedules[name] = schedule if settings.enabled else OffSchedule()
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, ("jobs", name, *first["loc"])))
            message = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"Invalid value for {place}: {message}.", hint=HINT) from None
        except (ValueError, KeyError, OverflowError) as error:
            raise ConfigError(f"Invalid times in [jobs.{name}]: {error}.", hint=HINT) from None
    return schedules


def _build_schedule(settings: JobSettings, usual: JobSchedule) -> JobSchedule:
    """Return the schedule of a table. Raises ValueError for an invalid expression or period."""
    if settings.cron is not None and settings.every is not None:
        raise ValueError("cron and every exclude each other")
    start, end = _to_moment(settings.start, settings), _to_moment(settings.end, settings)
    period: dict[str, Any] = {
        "start_date": start,
        "end_date": end,
        "timezone": settings.timezone,
    }
    if settings.cron is not None:
        fields: dict[str, Any] = {**_split_cron(settings.cron), **period}
        trigger = CronTrigger(**fields)
        words = f"{describe_cron(settings.cron)} {_name_zone(settings.timezone)}{_describe_limits(settings)}"
        return CronSchedule(trigger=trigger, description=words, jitter_seconds=settings.jitter)
    every = settings.every
    if every is None and isinstance(usual, IntervalSchedule):
        every = usual.trigger.interval
    if every is None:
        return _limit_usual(cast("CronSchedule", usual), settings, period)
    if every < MIN_INTERVAL:
        raise ValueError(f"every is less than {MIN_INTERVAL.seconds} seconds")
    from_first: dict[str, Any] = {**period, "start_date": start or FIRST_SLOT}
    interval = IntervalTrigger(seconds=int(every.total_seconds()), **from_first)
    words = f"every {_describe_duration(every)}{_describe_limits(settings)}"
    return IntervalSchedule(trigger=interval, description=words, jitter_seconds=settings.jitter)


def _limit_usual(usual: CronSchedule, settings: JobSettings, period: dict[str, Any]) -> CronSchedule:
    """Return the usual times of a job, on the clock and within the period of the settings."""
    fields: dict[str, Any] = {one.name: str(one) for one in usual.trigger.fields if not one.is_default}
    words = f"{usual.description.removesuffix(' UTC')} {_name_zone(settings.timezone)}{_describe_limits(settings)}"
    return CronSchedule(trigger=CronTrigger(**fields, **period), description=words, jitter_seconds=settings.jitter)


def _to_moment(value: datetime | date | None, settings: JobSettings) -> datetime | None:
    if value is None:
        return None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001 - it gets the zone of the settings below
    if moment.year not in YEARS:
        raise ValueError(f"{value} is not between {YEARS[0]} and {YEARS[-1]}")
    return moment if moment.tzinfo else moment.replace(tzinfo=settings.timezone)


def _split_cron(expression: str) -> dict[str, str]:
    """Return the fields of a cron expression for APScheduler, which counts the days of the week from Monday.

    >>> _split_cron("0 7 * * 0,2-4")["day_of_week"]
    'sun,tue-thu'
    """
    fields = expression.split()
    if len(fields) != 5:
        raise ValueError(f"{expression!r} has {len(fields)} fields, not 5: minute, hour, day, month, day of the week")
    minute, hour, day, month, weekday = fields
    names = re.sub(r"(?<![/\d])[0-7](?!\d)", lambda match: ("sun", *_DAYS)[int(match[0])], weekday)
    if (reversed_range := re.search(r"(?:^|,)sun-([a-z]{3})", names)) and reversed_range[1] != "sun":
        names = names.replace("sun-", "sun,mon-", 1)
    return {"minute": minute, "hour": hour, "day": day, "month": month, "day_of_week": names}


def describe_cron(expression: str) -> str:
    """Return a cron expression in words, or as it is if it is too rich for words.

    >>> describe_cron("30 7 * * mon-fri"), describe_cron("0 4 1 * *"), describe_cron("*/20 * * * *")
    ('at 07:30 on Monday to Friday', 'at 04:00 on day 1 of the month', 'every 20 minutes')
    """
    fields = _split_cron(expression)
    when = _describe_time(fields["minute"], fields["hour"])
    days = [
        _describe_days(fields["day_of_week"]),
        _describe_day_of_month(fields["day"]),
        _describe_month(fields["month"]),
    ]
    if when is None or None in days:
        return f"by cron {expression!r}"
    rest = " ".join(one for one in days if one)
    is_daily = when.startswith("at ") and not rest
    return f"daily {when}" if is_daily else f"{when} {rest}".strip()


def _describe_time(minute: str, hour: str) -> str | None:
    """Return the fields `minute` and `hour` of a cron expression in words; None if they are too rich for words."""
    if minute.isdigit() and hour.isdigit():
        return f"at {int(hour):02}:{int(minute):02}"
    if minute.isdigit() and re.fullmatch(r"\d+(?:,\d+)+", hour):
        times = [f"{int(one):02}:{int(minute):02}" for one in hour.split(",")]
        return f"at {', '.join(times[:-1])} and {times[-1]}"
    if minute.isdigit() and hour == "*":
        return f"every hour at minute {int(minute)}"
    if minute.startswith("*/") and hour == "*":
        return f"every {minute[2:]} minutes"
    if minute.isdigit() and hour.startswith("*/"):
        return f"every {hour[2:]} hours at minute {int(minute)}"
    return None


def _describe_days(weekdays: str) -> str | None:
    if weekdays == "*":
        return ""
    names: dict[str, str] = dict(zip(_DAYS, WEEKDAYS, strict=True))
    parts = [part.split("-") for part in weekdays.lower().split(",")]
    if any(day not in names for part in parts for day in part):
        return None
    return "on " + ", ".join(" to ".join(names[day] for day in part) for part in parts)


def _describe_day_of_month(day: str) -> str | None:
    if day == "*":
        return ""
    if day == "last":
        return "on the last day of the month"
    return f"on day {day} of the month" if re.fullmatch(r"\d+(?:[-,]\d+)*", day) else None


def _describe_month(month: str) -> str | None:
    if month == "*":
        return ""
    names = {
        **dict(zip(_MONTHS, _MONTH_NAMES, strict=True)),
        **{str(number): name for number, name in enumerate(_MONTH_NAMES, 1)},
    }
    parts = [part.split("-") for part in month.lower().split(",")]
    if any(one not in names for part in parts for one in part):
        return None
    return "in " + ", ".join(" to ".join(names[one] for one in part) for part in parts)


def _describe_duration(every: timedelta) -> str:
    """Return an interval in its largest whole unit.

    >>> _describe_duration(timedelta(minutes=90)), _describe_duration(timedelta(hours=2))
    ('90 minutes', '2 hours')
    """
    seconds = int(every.total_seconds())
    size = next(size for size in _UNITS if seconds % size == 0)
    return f"{seconds // size} {_UNITS[size]}{'' if seconds == size else 's'}"


def _describe_limits(settings: JobSettings) -> str:
    parts = [f", up to {_describe_duration(timedelta(seconds=settings.jitter))} later" if settings.jitter else ""]
    parts += [f", from {settings.start:%Y-%m-%d}" if settings.start else ""]
    parts += [f", until {settings.end:%Y-%m-%d}" if settings.end else ""]
    return "".join(parts)


def _name_zone(zone: tzinfo) -> str:
    return getattr(zone, "key", "UTC")
