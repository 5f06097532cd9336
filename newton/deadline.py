"""The deadline of a request: one moment until which all that it reads is waited for."""

import asyncio
import math
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import TypeVar

from newton.clock import monotonic_ms
from newton.errors import InputError, TimeoutExceededError

T = TypeVar("T")

# Of a request whose caller sets none. A busy machine is waited for; a server that hangs is not waited for without end.
DEFAULT_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 60.0
CLEANUP_SECONDS = 0.5  # for work that was cancelled at the deadline, such as a statement of the database

RETRY_HINT = "Retry later, or give the request more time (`X-Newton-Timeout`, `--timeout`, `timeout_seconds`)."


def check_timeout(seconds: object) -> float:
    """Return the number of seconds that a caller gave. Raises InputError if it is no number or out of range."""
    try:
        value = float(str(seconds))
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_TIMEOUT_SECONDS:
        what = f"A timeout of {str(seconds)[:20]!r} is not possible."
        raise InputError(what, hint=f"Give seconds: a number above 0, and at most {MAX_TIMEOUT_SECONDS:g}.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDeadline:
    """The moment until which a request waits for what it reads, by the monotonic clock.

    `seconds` is the time that the request had at its start. If it `accepts_partial` results, it continues at the
    deadline with what was found; otherwise it fails.
    """

    at_ms: float
    seconds: float
    accepts_partial: bool = False

    @classmethod
    def after(cls, seconds: float = DEFAULT_TIMEOUT_SECONDS, *, accepts_partial: bool = False) -> "RequestDeadline":
        """Return the deadline that is `seconds` from now."""
        return cls(at_ms=monotonic_ms() + 1_000 * seconds, seconds=seconds, accepts_partial=accepts_partial)

    @property
    def remaining(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(self.at_ms - monotonic_ms(), 0.0) / 1_000

    def accept_partial(self) -> "RequestDeadline":
        """Return the same deadline for a request that continues with what was found until then."""
        return replace(self, accepts_partial=True)

    def share(self, fraction: float) -> "RequestDeadline":
        """Return an earlier deadline: the end of this fraction of the time that is left, to leave time for other parts.

        Without partial results, the deadline stays: a request whose first part is late has nothing more to do.
        """
        if not self.accepts_partial or math.isinf(self.at_ms):
            return self
        return replace(self, at_ms=monotonic_ms() + 1_000 * fraction * self.remaining)

    def limit(self, seconds: float) -> float:
        """Return the seconds that an optional part may take: `seconds`, but at most half of what is left."""
        return min(seconds, self.remaining / 2)

    def timeout(self) -> asyncio.Timeout:
        """Return a context manager that raises TimeoutError if its block has not ended at the deadline."""
        return asyncio.timeout(None if math.isinf(self.at_ms) else self.remaining)

    def accept_late(self, name: str) -> str:
        """Return, for the result, why the part `name` is missing: it was late.

        Raises TimeoutExceededError if the request accepts no partial result.
        """
        if not self.accepts_partial:
            raise self.to_error(name)
        return f"no answer within {self.seconds:g} seconds"

    def to_error(self, name: str | None = None) -> TimeoutExceededError:
        """Return the error of a request that has not ended at its deadline; `name` is the part that it waited for."""
        waited = f" It waited for: {name}." if name else ""
        what = f"The memory was not read within {self.seconds:g} seconds, so there is no complete result.{waited}"
        return TimeoutExceededError(what, hint=RETRY_HINT)

    async def run(self, work: Awaitable[T]) -> T:
        """Return the result of `work`. Shortly after the deadline, cancel it and raise TimeoutExceededError.

        Work that observes the deadline itself has time to say what it waited for. The clean-up of cancelled work is
        waited for as briefly, because that of a statement needs the database.
        """
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self.remaining + CLEANUP_SECONDS)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
            raise
        if task.done():
            return task.result()
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody waits for it any more
        task.cancel()
        await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        raise self.to_error()


# For a caller that sets its own limit, such as a job or a benchmark.
NO_DEADLINE = RequestDeadline(at_ms=math.inf, seconds=math.inf)
