"""The definition of a background job: its schedule, and a function that runs it and returns the outcome."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from newton.runtime.jobs.queue import JobOutcome
from newton.runtime.jobs.triggers import JobSchedule
from newton.runtime.wiring import AgentServices


class Job(NamedTuple):
    """A scheduled job. `run` must be idempotent, because a run may be cancelled at any point and repeated."""

    name: str
    description: str
    schedule: JobSchedule
    run: Callable[[AgentServices], Awaitable[JobOutcome]]
    timeout_seconds: float = 600


def format_count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with thousands separators and the noun in singular or plural.

    >>> format_count(1, "fact"), format_count(2_000, "memory", "memories")
    ('1 fact', '2,000 memories')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
