"""Work side by side, with one failure coming out as itself."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


@asynccontextmanager
async def task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """A task group. When a task fails the others are cancelled and its own exception is raised, not a group."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group


async def with_timeout(awaitable: Awaitable[T], *, seconds: float) -> T:
    """The result of the work, or TimeoutError when it takes longer; then the work is cancelled."""
    async with asyncio.timeout(seconds):
        return await awaitable


@asynccontextmanager
async def idle_timeout(*, seconds: float) -> AsyncGenerator[Callable[[object], None]]:
    """Calls what is within off with a TimeoutError when it has not called what it gets for so long."""
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(seconds) as limit:
        yield lambda moved: limit.reschedule(clock() + seconds)
