"""Structured concurrency helpers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Yield a task group. When a task fails, cancel the others and raise its exception, not an exception group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group


async def with_timeout(awaitable: Awaitable[T], *, seconds: float) -> T:
    """Return the result of the awaitable. Raises TimeoutError and cancels it when it takes longer."""
    async with asyncio.timeout(seconds):
        return await awaitable


@asynccontextmanager
async def idle_timeout(*, seconds: float) -> AsyncGenerator[Callable[[object], None]]:
    """Cancel the block with a TimeoutError when the yielded function is not called for `seconds`."""
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(seconds) as timeout:
        yield lambda _: timeout.reschedule(clock() + seconds)
