"""A chat model that answers at once, as a server with OpenAI's protocol, to measure what Newton adds to a reply."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

MODEL = "instant"
REPLY = "All is well."
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def serve_instant_model() -> AsyncGenerator[str]:
    """Yield the base URL of a server on loopback that streams REPLY to each request. Connections stay open."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=2**24)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = next((line for line in head.splitlines() if line.startswith("content-length:")), ":0")
            await reader.readexactly(int(length.partition(":")[2]))
            writer.write(_HEAD + b"".join(map(_to_chunk, _build_events())) + b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _build_events() -> list[str]:
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    first, last = {"role": "assistant", "content": REPLY}, {"prompt_tokens": 10, "completion_tokens": 4}
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": first, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {**last, "total_tokens": 14}},
    ]
    return [*(json.dumps({**common, **chunk}) for chunk in chunks), "[DONE]"]


def _to_chunk(event: str) -> bytes:
    data = f"data: {event}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)
