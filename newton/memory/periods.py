"""A stretch of time that ends now, beside the equally long one before it. Pure."""

from datetime import datetime
from typing import NamedTuple


class Periods(NamedTuple):
    """The period from `start` to `now`, both included, and the one from `before` up to `start`."""

    before: datetime
    start: datetime
    now: datetime

    def current(self, at: datetime) -> bool:
        return self.start <= at <= self.now

    def former(self, at: datetime) -> bool:
        return self.before <= at < self.start
