"""Triggers of jobs: the times at which a job is due, by the triggers of APScheduler. Pure functions.

A due time is called a slot. It identifies the run, so it must be the same whenever and wherever it is computed: the
random delay of a trigger (jitter) is therefore no part of it, and is added when a run is queued.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol, get_args

from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

FIRST_SLOT = datetime(1970, 1, 5, tzinfo=UTC)  # the origin of intervals: a Monday
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
_FIRST_WINDOW, _MAX_WINDOW = timedelta(hours=2), timedelta(days=366 * 9)  # 29 February may be eight years away
_TICK = timedelta(microseconds=1)


class JobSchedule(Protocol):
    """The due times (slots) of a job. `description` states them in words; `jitter_seconds` is the maximum delay."""

    @property
    def description(self) -> str: ...

    @property
    def jitter_seconds(self) -> int: ...

    def last_slot(self, now: datetime) -> datetime | None:
        """Return the time of the last slot at or before `now`, in UTC; None if there was none."""
        ...

    def next_slot(self, now: datetime) -> datetime | None:
        """Return the time of the first slot after `now`, in UTC, or None after the end of the schedule."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSchedule:
    """Slots at equal intervals from the start of the trigger, without regard to daylight saving time."""

    trigger: IntervalTrigger
    description: str
    jitter_seconds: int = 0

    def last_slot(self, now: datetime) -> datetime | None:
        assert self.trigger.start_date is not None  # the trigger has set it
        start, every = self.trigger.start_date.astimezone(UTC), self.trigger.interval
        end = min(now, self.trigger.end_date) if self.trigger.end_date else now
        return start + (end - start) // every * every if end >= start else None

    def next_slot(self, now: datetime) -> datetime | None:
        found = self.trigger.get_next_fire_time(None, now + _TICK)
        if found is not None and found <= now:  # the trigger computes with floating-point numbers
            found = self.trigger.get_next_fire_time(found, now)
        return _in_utc(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    """Slots at the times of a cron expression, on the clock of a time zone.

    At the change to summer time, a job of an hour that is skipped runs an hour later. At the change back, a job of an
    hour that comes twice runs once, unless the expression names no hour.
    """

    trigger: CronTrigger
    description: str
    jitter_seconds: int = 0

    def last_slot(self, now: datetime) -> datetime | None:
        # a trigger only computes later times, so search forward from ever earlier ones
        until = min(now, self.trigger.end_date) if self.trigger.end_date else now
        window = _FIRST_WINDOW
        while True:
            slot = self.next_slot(until - window - _TICK)
            if slot is not None and slot <= until:
                return self._find_last_slot(slot, until)
            if window == _MAX_WINDOW:
                return None
            window = min(window * 4, _MAX_WINDOW)

    def _find_last_slot(self, slot: datetime, until: datetime) -> datetime:
        """Return the last slot up to `until`, from an earlier one, by bisection: there may be millions between."""
        end = until
        while (following := self.next_slot(slot)) is not None and following <= until:
            middle = slot + (end - slot) / 2
            found = self.next_slot(middle)
            if found is not None and found <= until:
                slot = found
            else:
                end, slot = middle, following
        return slot

    def next_slot(self, now: datetime) -> datetime | None:
        after = now.astimezone(UTC)
        found = self.trigger.get_next_fire_time(None, (after + _TICK).astimezone(self.trigger.timezone))
        while found is not None and (self._is_repeated(found) or found.astimezone(UTC) <= now):
            after = max(found.astimezone(UTC), after) + timedelta(seconds=1)
            found = self.trigger.get_next_fire_time(None, after.astimezone(self.trigger.timezone))
        return _in_utc(found)

    def _is_repeated(self, moment: datetime) -> bool:
        """Return True if the trigger names hours, and this one has come already before the clock was set back."""
        hours = next(str(one) for one in self.trigger.fields if one.name == "hour")
        return moment.fold == 1 and not hours.startswith("*")


@dataclass(frozen=True, slots=True)
class OffSchedule:
    """The schedule of a job that runs only on request."""

    description: str = "off"
    jitter_seconds: int = 0

    def last_slot(self, now: datetime) -> datetime | None:
        return None

    def next_slot(self, now: datetime) -> datetime | None:
        return None


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment is not None else None


def every_minutes(minutes: int) -> IntervalSchedule:
    """Return a schedule with a slot at each multiple of `minutes`.

    >>> every_minutes(5).last_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-01T10:10:00+00:00'
    """
    trigger = IntervalTrigger(minutes=minutes, start_date=FIRST_SLOT, timezone=UTC)
    return IntervalSchedule(trigger=trigger, description=f"every {minutes} minutes")


def daily(hour: int, minute: int = 0) -> CronSchedule:
    trigger = CronTrigger(hour=hour, minute=minute, timezone=UTC)
    return CronSchedule(trigger=trigger, description=f"daily at {hour:02}:{minute:02} UTC")


def weekly(weekday: Weekday, hour: int) -> CronSchedule:
    """Return a schedule with one slot per week: on the weekday at the full hour, in UTC.

    >>> weekly("Sunday", 6).next_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-08T06:00:00+00:00'
    """
    trigger = CronTrigger(day_of_week=WEEKDAYS.index(weekday), hour=hour, minute=0, timezone=UTC)
    return CronSchedule(trigger=trigger, description=f"{weekday}s at {hour:02}:00 UTC")


def backoff_delay(attempts: int, jitter: float) -> timedelta:
    """Return the exponential backoff delay: 5 s, doubled per attempt up to 600 s, times 0.5 plus `jitter` (0 to 1)."""
    return timedelta(seconds=min(5 * 2.0 ** min(attempts - 1, 20), 600) * (0.5 + jitter))
