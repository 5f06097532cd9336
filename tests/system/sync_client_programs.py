"""Programs that use the synchronous client in ways in which it must not wait for ever. A test runs each by its name."""

import asyncio
import atexit
import faulthandler
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

from newton.client import ApiError, SyncClient
from newton.client.http_messages import ServerSentEvent
from newton.client.sync_client import LoopThread

LEFT: list[object] = []  # deleted while the interpreter exits


def exit_with_all_open() -> None:
    """Exit with an open client, a stream, and a generator that has both; a handler of the exit uses the client."""
    client = SyncClient()
    LEFT.extend([client, events := client.events(after=0), nested := stream_events()])
    atexit.register(lambda: show(client.get_token_info()["agent"]))
    show(next(events).event_id == int(next(nested).id))


def fork_with_all_open() -> None:
    """Use a client and a stream in a process that it forks, and then again in this process."""
    client = SyncClient()
    events = client.events(after=0)
    number = next(events).event_id
    if not (child := os.fork()):
        signal.alarm(60)  # ends this process if it waits for ever, as the fault handler ends its parent
        show(client.get_token_info()["agent"])
        try:
            next(events)
        except RuntimeError as error:
            show(error)
        os._exit(0)
    show(os.waitpid(child, 0)[1], next(events).event_id > number, client.get_token_info()["agent"])


def interrupt_calls() -> None:
    """Interrupt a stream that has no more events, and go on with the client."""
    with SyncClient() as client:
        client.get_token_info()
        before = count_open_files()
        Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
        try:
            for _ in client.events(after=0):
                pass
        except KeyboardInterrupt:
            show("interrupted", client.get_token_info()["agent"])
        wait_until_closed(before)


def leave_streams() -> None:
    """Leave streams in every way; count the connections that are left."""
    with SyncClient() as client:
        client.get_token_info()
        before = count_open_files()
        for _ in client.events(after=0):
            break
        with suppress(ZeroDivisionError):
            for event in client.events(after=0):
                show(event.event_id / 0)
        with client.stream("GET", "/v1/events", headers={"Last-Event-ID": "0"}) as events:
            next(events)
        gc.disable()
        for stream in (client.events(after=0), stream_events()):
            next(stream)
            cycle: list[object] = [stream]
            cycle.append(cycle)
        del cycle, stream
        assert LoopThread.current
        LoopThread.current.call(collect())  # where a finalizer cannot wait for a response
        wait_until_closed(before)


def share_a_client() -> None:
    """Call from many threads, from one in which an event loop runs, and after the client was closed."""

    def echo(word: str) -> str:
        client.put_item(["words"], word, {"text": word})
        return client.item(["words"], word)["value"]["text"]

    async def call() -> None:
        show(client.get_token_info()["agent"], (await asyncio.to_thread(client.get_token_info))["agent"])

    words = ["quay", "harbour", "mole", "pier", "wharf", "jetty", "dock", "slip"]
    with SyncClient() as client, ThreadPoolExecutor(4) as pool:
        show(*pool.map(echo, words))
        asyncio.run(call())
    try:
        client.calibration()
    except RuntimeError as error:
        show(error)


def fail_calls() -> None:
    """Get the errors of wrong arguments, of an unknown id, and of a daemon that sends nothing in time."""
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    with silent, SyncClient() as client, SyncClient(url, max_attempts=1, timeout=0.3) as hasty:
        untyped: Any = client
        for call in (untyped.recall, untyped.expand, lambda: client.expand("0" * 32), hasty.calibration):
            try:
                call()
            except TypeError as error:
                show(error)
            except ApiError as error:
                show(error.code, hasty.max_attempts)


def stream_events() -> Generator[ServerSentEvent]:
    with SyncClient() as client, client.stream("GET", "/v1/events", headers={"Last-Event-ID": "0"}) as events:
        yield from events


def wait_until_closed(before: int) -> None:
    while count_open_files() > before:
        time.sleep(0.05)
    show("all closed")


def count_open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def collect() -> None:
    gc.collect()


def show(*values: object) -> None:
    sys.stdout.write(" ".join(map(str, values)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.dup2(1, 2)  # what the interpreter writes while it exits
    faulthandler.dump_traceback_later(60, exit=True)
    globals()[sys.argv[1]]()
