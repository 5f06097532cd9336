"""Helpers for asyncio: task groups, timeouts, and computation outside of the event loop."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")

THREAD_CHARS = 50_000  # of texts whose computation runs in a thread; a shorter one costs less than the thread


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


async def run_to_completion(work: Awaitable[T]) -> T:
    """Run `work` and return its result.

    If the caller is cancelled meanwhile, wait for the end of `work`, then raise CancelledError.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


@asynccontextmanager
async def idle_timeout(*, seconds: float) -> AsyncGenerator[Callable[[object], None]]:
    """Yield a function that restarts the timeout. Its argument is ignored.

    Raise TimeoutError in the block when the function is not called for `seconds`, counted from the start of the block.
    """
    clock = asyncio.get_running_loop().time
    async with asyncio.timeout(seconds) as timeout:
        yield lambda _: timeout.reschedule(clock() + seconds)


async def run_in_thread(work: Callable[[], T], on_progress: Callable[[int], None]) -> T:
    """Return the result of `work`, run in a thread. `on_progress(0)` is called each second while it runs."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    while not (await asyncio.wait({task}, timeout=1))[0]:
        on_progress(0)
    return await task


async def compute(work: Callable[[], T], *, chars: int) -> T:
    """Return the result of `work`, a computation on texts of `chars` characters in total.

    For long texts it runs in a thread, so that the event loop serves other requests meanwhile.
    """
    return work() if chars < THREAD_CHARS else await asyncio.to_thread(work)
