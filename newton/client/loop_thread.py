"""Thread with an event loop, in which the synchronous client runs what the asynchronous one returns."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Thread, current_thread
from typing import Any, ClassVar

Asynchronous = Coroutine[Any, Any, Any] | AsyncGenerator[Any] | AbstractAsyncContextManager[AsyncGenerator[Any]]

END = object()  # follows the last item of a stream


class LoopThread(Thread):
    """Thread with the event loop of all synchronous clients of a process, which may exit while it runs."""

    current: ClassVar["LoopThread | None"] = None  # not alive in a forked process

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open = set[object]()  # else the garbage collector may finalize a stream and its parts in any order
        super().__init__(name="newton-client", target=self.loop.run_forever, daemon=True)

    def call(self, coroutine: Coroutine[Any, Any, Any], *, closes: bool = False) -> Any:
        """Run a coroutine and return its result. If the wait is interrupted, the coroutine is cancelled.

        Raises RuntimeError where a wait would not end. A coroutine that closes something is not waited for there.
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
        """Return the synchronous form of what a method of the asynchronous client returned."""
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
