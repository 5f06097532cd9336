"""Structured concurrency helpers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Yield a task group. When a task fails, cancel the others and raise its exception, not a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group


async def with_timeout(awaitable: Awaitable[T], *, seconds: float) -> T:
    """Return the result of the work. Raises TimeoutError and cancels the work when it takes longer."""
    async with asyncio.timeout(seconds):
        return await awaitable


@asynccontextmanager
async def idle_timeout(*, seconds: float) -> AsyncGenerator[Callable[[object], None]]:
    """Cancel the block with a TimeoutError when the yielded function is not called for that long."""
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(seconds) as limit:
        yield lambda moved: limit.reschedule(clock() + seconds)
