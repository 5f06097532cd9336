"""What Newton uses of it."""

from datetime import datetime, timedelta, tzinfo

class IntervalTrigger:
    timezone: tzinfo
    start_date: datetime | None
    end_date: datetime | None
    interval: timedelta

    def __init__(
        self,
        *,
        minutes: float = 0,
        seconds: float = 0,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        timezone: tzinfo | None = None,
    ) -> None: ...
    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...
