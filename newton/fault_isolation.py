"""Isolation of failures: a part of an operation that raises costs only this part. No other module catches everything.

A part has a name, a default in place of its result, and an entry in `missing` of the operation when it fails. Each
failure is also counted and logged.
"""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from newton.errors import (
    CensorError,
    ConflictError,
    DaemonStoppedError,
    DatabaseError,
    ForbiddenError,
    GuardrailError,
    InputError,
    NewtonError,
    NotFoundError,
    OriginNotAllowedError,
    OverloadedError,
    SchemaVersionError,
    StorageQuotaError,
    TimeoutExceededError,
    TooLargeError,
    UnauthorizedError,
)

T = TypeVar("T")

# Errors that end the whole operation: its caller can correct them, or no part of it can succeed. A part never hides
# them; in particular, a censor or a guardrail that forbids something is obeyed.
OPERATION_ERRORS = (
    *(InputError, NotFoundError, ConflictError, TooLargeError, StorageQuotaError),
    *(UnauthorizedError, ForbiddenError, OriginNotAllowedError, CensorError, GuardrailError),
    *(OverloadedError, TimeoutExceededError, DatabaseError, SchemaVersionError, DaemonStoppedError),
)
MAX_FRAMES = 12  # of a traceback in the log, innermost last

_log = logging.getLogger("newton")
_failure_counts = Counter[tuple[str, str]]()


def describe_error(error: Exception) -> str:
    """Return a reason that may be shown: the message of an error of Newton, else only the type.

    The message of another error may quote text of a user.

    >>> describe_error(KeyError("secret"))
    'internal error (KeyError)'
    """
    return error.what if isinstance(error, NewtonError) else f"internal error ({type(error).__name__})"


async def run_part(
    name: str,
    work: Awaitable[T],
    *,
    default: T,
    missing: MutableMapping[str, str],
    passed: tuple[type[Exception], ...] = OPERATION_ERRORS,
) -> T:
    """Return the result of `work`. If it raises, return `default` and set `missing[name]` to the reason.

    Raises CancelledError, also if work that is being cancelled raises something else, and the errors of `passed`
    unchanged. `work` must not write in a transaction that its caller commits: what it wrote before it raised would be
    stored.
    """
    with isolate_failure(name, missing, passed=passed):
        return await work
    return default


def compute_part(name: str, work: Callable[[], T], *, default: T, missing: MutableMapping[str, str]) -> T:
    """Return the result of the function `work`.

    If it raises, return `default` and set `missing[name]` to the reason.
    """
    with isolate_failure(name, missing):
        return work()
    return default


@contextmanager
def isolate_failure(
    name: str,
    missing: MutableMapping[str, str],
    *,
    passed: tuple[type[Exception], ...] = OPERATION_ERRORS,
    describe: Callable[[Exception], str] = describe_error,
) -> Generator[None]:
    """If the `with` block raises, end it without an error, set `missing[name]` to the reason, and log the error.

    Raises CancelledError, also if a block that is being cancelled raises something else, and the errors of `passed`
    unchanged.
    """
    try:
        yield
    except passed:
        raise
    except Exception as error:
        if _is_being_cancelled():  # a statement that is cut off at the deadline may raise an error of its connection
            raise asyncio.CancelledError from error
        kind = error.code if isinstance(error, NewtonError) else type(error).__name__
        _failure_counts[name, kind] += 1
        # without the message of the error, which may contain text of a user
        _log.error("part_failed", extra={"part": name, "error": kind, "at": _list_places(error)})
        missing[name] = describe(error)


def count_failures() -> Counter[tuple[str, str]]:
    """Return how many isolated parts of this process have failed, by the name of the part and the type of the error."""
    return _failure_counts.copy()


def _is_being_cancelled() -> bool:
    """Return whether the current task was told to end. False outside of an event loop."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


def _list_places(error: Exception) -> list[str]:
    """Return the innermost frames of the traceback of an error, as `file:line function`, without any value."""
    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
