"""Job schedules: equidistant slots in UTC, independent of local time changes. Pure functions."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

FIRST_SLOT = datetime(1970, 1, 5, tzinfo=UTC)  # the origin of the slots
WEEKDAYS: tuple[Weekday, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """Slots at each multiple of `every` plus `offset`; `description` is the readable form."""

    every: timedelta
    offset: timedelta = timedelta()
    description: str

    def last_slot(self, now: datetime) -> datetime:
        """Return the last slot at or before `now`."""
        return FIRST_SLOT + (now - FIRST_SLOT - self.offset) // self.every * self.every + self.offset

    def next_slot(self, now: datetime) -> datetime:
        """Return the first slot after `now`."""
        return self.last_slot(now) + self.every


def every_minutes(minutes: int) -> JobSchedule:
    """
    >>> every_minutes(5).last_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-01T10:10:00+00:00'
    """
    return JobSchedule(every=timedelta(minutes=minutes), description=f"every {minutes} minutes")


def daily(hour: int, minute: int = 0) -> JobSchedule:
    return JobSchedule(
        every=DAY, offset=timedelta(hours=hour, minutes=minute), description=f"daily at {hour:02}:{minute:02} UTC"
    )


def weekly(weekday: Weekday, hour: int) -> JobSchedule:
    """
    >>> weekly("Sunday", 6).next_slot(datetime(2026, 3, 1, 10, 13, tzinfo=UTC)).isoformat()
    '2026-03-08T06:00:00+00:00'
    """
    after = timedelta(days=WEEKDAYS.index(weekday), hours=hour)
    return JobSchedule(every=WEEK, offset=after, description=f"{weekday}s at {hour:02}:00 UTC")


def backoff_delay(attempts: int, jitter: float) -> timedelta:
    """Return the exponential backoff delay: 5 seconds, doubled per attempt up to ten minutes, times 0.5 to 1.5 by
    `jitter` (0 to 1)."""
    return timedelta(seconds=min(5 * 2.0 ** min(attempts - 1, 20), 600) * (0.5 + jitter))
