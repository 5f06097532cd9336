"""A stretch of time that ends now, beside the equally long one before it. Pure."""

from datetime import datetime
from typing import NamedTuple


class ReportPeriods(NamedTuple):
    """The period from `start` to `now`, both included, and the one from `before` up to `start`."""

    before: datetime
    start: datetime
    now: datetime

    def is_current(self, moment: datetime) -> bool:
        return self.start <= moment <= self.now

    def is_previous(self, moment: datetime) -> bool:
        return self.before <= moment < self.start
