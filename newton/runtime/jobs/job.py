"""What a job is: a schedule, and an act that says what it did and why."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from newton.runtime.jobs.queue import Outcome
from newton.runtime.jobs.schedule import Schedule
from newton.runtime.wiring import Newton

Act = Callable[[Newton], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`act` may be broken off anywhere and begun again: what it has done by then it does not do twice. After so many
    `seconds` it is broken off."""

    name: str
    does: str
    schedule: Schedule
    act: Act
    seconds: float = 600


def counted(number: int, what: str, many: str | None = None) -> str:
    """
    >>> counted(1, "fact"), counted(2_000, "memory", "memories")
    ('1 fact', '2,000 memories')
    """
    return f"{number:,} {what if number == 1 else many or what + 's'}"
