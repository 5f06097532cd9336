"""Helpers for asyncio: task groups and timeouts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Yield a task group. When a task fails, cancel the other tasks and raise its error, not an exception group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group


async def with_timeout(awaitable: Awaitable[T], *, seconds: float) -> T:
    """Await the awaitable and return its result. After `seconds`, cancel it and raise TimeoutError."""
    async with asyncio.timeout(seconds):
        return await awaitable


@asynccontextmanager
async def idle_timeout(*, seconds: float) -> AsyncGenerator[Callable[[object], None]]:
    """Yield a function that restarts the timeout, whatever its argument.

    Raise TimeoutError in the block when the function is not called for `seconds`, counted from the start of the block.
    """
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(seconds) as timeout:
        yield lambda _: timeout.reschedule(clock() + seconds)
