"""Synchronous client: its methods run those of the asynchronous client in a thread. A stub has their types."""

import os
import sys
from collections.abc import Callable
from functools import partial, wraps
from operator import attrgetter
from threading import RLock
from typing import Any, Self

from .client import Client
from .loop_thread import LoopThread

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
        """Return the thread of this process, which the first call starts, and the client whose connections it has."""
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
