"""What Newton uses of it."""

from datetime import datetime, tzinfo

class BaseField:
    name: str
    is_default: bool

class CronTrigger:
    timezone: tzinfo
    start_date: datetime | None
    end_date: datetime | None
    fields: list[BaseField]

    def __init__(
        self,
        *,
        month: int | str | None = None,
        day: int | str | None = None,
        day_of_week: int | str | None = None,
        hour: int | str | None = None,
        minute: int | str | None = None,
        second: int | str | None = None,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        timezone: tzinfo | None = None,
    ) -> None: ...
    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None: ...
