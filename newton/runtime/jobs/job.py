"""A background job: a schedule and a function that returns its result and the reason."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from newton.runtime.jobs.queue import JobOutcome
from newton.runtime.jobs.schedule import JobSchedule
from newton.runtime.wiring import AgentServices

JobFunction = Callable[[AgentServices], Awaitable[JobOutcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A scheduled job. `run` must be idempotent, because it may be cancelled anywhere and run again; it is cancelled
    after `timeout_seconds`."""

    name: str
    description: str
    schedule: JobSchedule
    run: JobFunction
    timeout_seconds: float = 600


def format_count(number: int, singular: str, plural: str | None = None) -> str:
    """
    >>> format_count(1, "fact"), format_count(2_000, "memory", "memories")
    ('1 fact', '2,000 memories')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
