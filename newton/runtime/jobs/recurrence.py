"""Job schedules: time slots at equal intervals in UTC, independent of daylight saving time. Pure functions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

FIRST_SLOT = datetime(1970, 1, 5, tzinfo=UTC)  # the origin of the slots: a Monday
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """A schedule with a time slot at each multiple of `every` plus `offset`. `description` states it in words."""

    every: timedelta
    offset: timedelta = timedelta()
    description: str

    def last_slot(self, now: datetime) -> datetime:
        """Return the time of the last slot at or before `now`."""
        return FIRST_SLOT + (now - FIRST_SLOT - self.offset) // self.every * self.every + self.offset

    def next_slot(self, now: datetime) -> datetime:
        """Return the time of the first slot after `now`."""
        return self.last_slot(now) + self.every


def every_minutes(minutes: int) -> JobSchedule:
    """Return a schedule with a slot at each multiple of `minutes`.

    >>> every_minutes(5).last_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-01T10:10:00+00:00'
    """
    return JobSchedule(every=timedelta(minutes=minutes), description=f"every {minutes} minutes")


def daily(hour: int, minute: int = 0) -> JobSchedule:
    offset = timedelta(hours=hour, minutes=minute)
    return JobSchedule(every=timedelta(days=1), offset=offset, description=f"daily at {hour:02}:{minute:02} UTC")


def weekly(weekday: Weekday, hour: int) -> JobSchedule:
    """Return a schedule with one slot per week: on the weekday at the full hour, in UTC.

    >>> weekly("Sunday", 6).next_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-08T06:00:00+00:00'
    """
    offset = timedelta(days=WEEKDAYS.index(weekday), hours=hour)
    return JobSchedule(every=timedelta(weeks=1), offset=offset, description=f"{weekday}s at {hour:02}:00 UTC")


def backoff_delay(attempts: int, jitter: float) -> timedelta:
    """Return the exponential backoff delay: 5 s, doubled per attempt up to 600 s, times 0.5 plus `jitter` (0 to 1)."""
    return timedelta(seconds=min(5 * 2.0 ** min(attempts - 1, 20), 600) * (0.5 + jitter))
