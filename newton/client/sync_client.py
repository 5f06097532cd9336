"""Synchronous client: its methods run those of the asynchronous client in a thread. A stub has their types."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial, wraps
from operator import attrgetter
from threading import RLock, Thread, current_thread
from typing import Any, ClassVar, Self

from .client import Client

Asynchronous = Coroutine[Any, Any, Any] | AsyncGenerator[Any] | AbstractAsyncContextManager[AsyncGenerator[Any]]

END = object()  # follows the last item of a stream


class LoopThread(Thread):
    """Daemon thread with the event loop of all synchronous clients of a process."""

    current: ClassVar["LoopThread | None"] = None  # not alive in a forked process

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open = set[object]()  # else the garbage collector may finalize a stream and its parts in any order
        super().__init__(name="newton-client", target=self.loop.run_forever, daemon=True)

    def call(self, coroutine: Coroutine[Any, Any, Any], *, closes: bool = False) -> Any:
        """Run a coroutine in the thread and return its result. If the wait is interrupted, cancel the coroutine.

        In a finalizer or a forked process, a wait would not end: raise RuntimeError or, if the coroutine `closes`
        something, return None at once.
        """
        can_wait = self.is_alive() and self is not current_thread() and not sys.is_finalizing()
        if not can_wait and not closes:
            coroutine.close()
            raise RuntimeError("Neither a finalizer nor a forked process can wait for this. Open a stream again there.")
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        if not can_wait:
            return None
        try:
            return future.result()
        finally:
            future.cancel()
            del future  # the traceback of an error refers to this frame, and the future to the error

    def convert(self, result: Asynchronous) -> Any:
        """Return the result of a coroutine, a generator for an asynchronous one, or a context manager likewise."""
        if isinstance(result, Coroutine):
            return self.call(result)
        return self._iterate(result) if isinstance(result, AsyncGenerator) else self._enter(result)

    def _iterate(self, stream: AsyncGenerator[Any]) -> Generator[Any]:
        async def advance() -> Any:
            return await anext(stream, END)

        self.open.add(stream)
        try:
            while (item := self.call(advance())) is not END:
                yield item
        except GeneratorExit:
            self.call(stream.aclose(), closes=True)
            raise
        finally:
            self.open.discard(stream)

    @contextmanager
    def _enter(self, context: AbstractAsyncContextManager[AsyncGenerator[Any]]) -> Generator[Any]:
        stream = self.call(context.__aenter__())
        self.open.add(context)
        try:
            yield self._iterate(stream)
        finally:
            self.open.discard(context)
            self.call(context.__aexit__(None, None, None), closes=True)


LOCK = RLock()
if hasattr(os, "register_at_fork"):  # a forked process has no other thread that could release the lock
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class SyncClient:
    """HTTP client for the memory of one agent, without asyncio. Use it with `with`, which closes it.

    It has the methods of `Client`. Several threads may use it at the same time, and an event loop may run in them.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._create = partial(Client, *args, **options)
        self._client = self._create()
        self._thread: LoopThread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if not sys.is_finalizing():
            thread, client = self._bind()
            thread.call(client.aclose(), closes=True)

    def _bind(self) -> tuple[LoopThread, Client]:
        """Return the thread of this process and the client that uses it. The first call starts the thread."""
        if sys.is_finalizing():
            raise RuntimeError("The interpreter exits, so the client cannot wait for a response. Call it earlier.")
        with LOCK:
            thread = LoopThread.current
            if thread is None or not thread.is_alive():
                thread = LoopThread.current = LoopThread()
                thread.start()
            if self._thread not in (None, thread):
                self._client = self._create()  # in a forked process, because its parent uses the connections
            self._thread = thread
            return thread, self._client


def _build_method(name: str) -> Callable[..., Any]:
    @wraps(getattr(Client, name))
    def method(*args: Any, **fields: Any) -> Any:
        thread, client = args[0]._bind()
        return thread.convert(getattr(client, name)(*args[1:], **fields))

    return method


for _name in dir(Client):
    if not _name.startswith("_") and _name != "aclose":
        setattr(SyncClient, _name, _build_method(_name))
for _name in ("max_attempts", "redacted"):
    setattr(SyncClient, _name, property(attrgetter(f"_client.{_name}")))
