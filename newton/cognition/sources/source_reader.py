"""Reading of one source of a context until the deadline of the request."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from newton.deadline import RequestDeadline
from newton.fault_isolation import run_part

T = TypeVar("T")


@dataclass(slots=True)
class SourceReader:
    """Reads sources until one deadline. `missing` maps the names of late and failed sources to reasons."""

    deadline: RequestDeadline
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def read_or_default(self, name: str, source: Awaitable[T], *, default: T) -> T:
        """Return what the source has; `default`, with an entry in `missing`, if it fails or is late.

        Raises TimeoutExceededError for a late source if the request accepts no partial result.
        """
        try:
            async with self.deadline.timeout():
                return await run_part(name, source, default=default, missing=self.missing)
        except TimeoutError:
            self.missing[name] = self.deadline.accept_late(name)
            return default
