"""A scripted OpenAI-compatible endpoint on loopback: real HTTP, canned answers."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, TypeVar, cast

from newton.heart.reconciliation.prompt import QUESTION

Respond = Callable[["Wire"], Awaitable[None]]
Made = TypeVar("Made")
Result = TypeVar("Result")
NOTHING_CHANGES = '{"items": []}'  # the answer of a model that is asked what new lines change


@dataclass(slots=True)
class Wire:
    """One request, and the way to answer it."""

    path: str
    body: dict[str, Any]
    writer: asyncio.StreamWriter

    async def send(self, status: int, body: object, **headers: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        lines = [f"HTTP/1.1 {status} x", "Content-Type: application/json", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write(("\r\n".join([*lines, f"Content-Length: {len(text.encode())}"]) + "\r\n\r\n" + text).encode())
        await self.writer.drain()

    async def begin_stream(self) -> None:
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        await self.writer.drain()

    async def event(self, data: object) -> None:
        self.writer.write(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        await self.writer.drain()


@dataclass(slots=True)
class Endpoint:
    """Where it listens, and what it was asked."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextmanager
def aside(opened: AbstractAsyncContextManager[Made]) -> Generator[Made]:
    """Keep it open in another thread, for a command that runs in this one, where it can handle signals."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()

    def wait(work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=60)

    async def enter() -> Made:
        return await opened.__aenter__()

    async def leave() -> None:
        await opened.__aexit__(None, None, None)

    try:
        made = wait(enter())
        try:
            yield made
        finally:
            wait(leave())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=60)
        loop.close()


def _content_length(head: str) -> int:
    lines = (line for line in head.splitlines() if line.lower().startswith("content-length"))
    return int(next(lines, ":0").partition(":")[2])


@asynccontextmanager
async def endpoint(*responses: Respond, lists: bool = False) -> AsyncGenerator[Endpoint]:
    """Answers each request with the next response, the last one again and again.

    Unless it `lists` its models, a question for them is refused and not noted.
    """
    here, left = Endpoint(), list(responses)

    serving: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(cast("asyncio.Task[None] | None", asyncio.current_task()))
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            content = await reader.readexactly(_content_length(head))
            wire = Wire(head.split(" ")[1], json.loads(content or "{}"), writer)
            if not (lists or content) and wire.path.split("?")[0].endswith("/models"):
                await fails(404)(wire)
            else:
                here.asked.append(wire.body)
                await (left.pop(0) if len(left) > 1 else left[0])(wire)
        except ConnectionError:
            return
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    here.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield here
    finally:
        server.close()
        tasks = [task for task in serving if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def is_reading(body: dict[str, Any]) -> bool:
    """Whether a request asks what new lines change, which Newton does in the background, at any time."""
    return QUESTION in str(body["messages"][-1]["content"])


def says(pieces: Sequence[str], *, usage: tuple[int, int] | None = (11, 3)) -> Respond:
    """A streamed reply."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for piece in pieces:
            await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}))
        if usage:
            counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
            await wire.event(chunk({"choices": [], "usage": counted}))
        await wire.event("[DONE]")

    return respond


def calls_tools(*calls: tuple[str, str, object], text: str = "") -> Respond:
    """A reply that calls tools: of each the id, the name and the arguments, which come in two pieces."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        if text:
            await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}))
        for place, (call_id, name, given) in enumerate(calls):
            words = json.dumps(given)
            for part in (
                {"index": place, "id": call_id, "type": "function", "function": {"name": name, "arguments": words[:3]}},
                {"index": place, "function": {"arguments": words[3:]}},
            ):
                await wire.event(chunk({"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}))
        await wire.event(chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
        counted = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        await wire.event(chunk({"choices": [], "usage": counted}))
        await wire.event("[DONE]")

    return respond


def fails(status: int, **headers: str) -> Respond:
    async def respond(wire: Wire) -> None:
        await wire.send(status, {"error": {"message": "no"}}, **headers)

    return respond


async def hangs(wire: Wire) -> None:
    await asyncio.Event().wait()


async def talks_garbage(wire: Wire) -> None:
    await wire.begin_stream()
    await wire.event("{not json")


async def embeds(wire: Wire) -> None:
    rows = [[float(len(text)), 1.0] for text in wire.body["input"]]
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    await wire.send(200, {"object": "list", "model": "m", "data": data, "usage": usage})


def chunk(fields: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", **fields}
