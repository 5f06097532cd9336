"""When a job is due: slots at equal distances in UTC, which no change of the local time moves. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

FIRST_SLOT = datetime(1970, 1, 5, tzinfo=UTC)  # slots are counted from here
WEEKDAYS: tuple[Weekday, ...] = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """A slot each `every`, `after` the beginning of each; `said` is how a person reads it."""

    every: timedelta
    offset: timedelta = timedelta()
    description: str

    def last_slot(self, now: datetime) -> datetime:
        """The last slot by then: whoever comes late finds this one, and none of those before it."""
        return FIRST_SLOT + (now - FIRST_SLOT - self.offset) // self.every * self.every + self.offset

    def next_slot(self, now: datetime) -> datetime:
        """The first slot after that moment."""
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
    """How long a run that has failed so often waits: 5 seconds, doubled each time up to ten minutes, by `luck`, from
    0 to 1, up to half less or more, so that those that failed together do not come back together."""
    return timedelta(seconds=min(5 * 2.0 ** min(attempts - 1, 20), 600) * (0.5 + jitter))
