"""Reading of one source of a context within a timeout."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from newton.concurrency import with_timeout

T = TypeVar("T")


@dataclass(slots=True)
class SourceReader:
    """Reads sources, each within a timeout. `missing` maps the names of late sources to reasons."""

    timeout_seconds: float
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def read_or_default(self, name: str, source: Awaitable[T], *, default: T) -> T:
        """Return what the source has; `default`, with an entry in `missing`, if it is late."""
        try:
            return await with_timeout(source, seconds=self.timeout_seconds)
        except TimeoutError:
            self.missing[name] = f"no answer within {self.timeout_seconds:g} seconds"
            return default
