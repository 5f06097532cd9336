"""Relay of MCP messages between standard streams and an MCP server over streamable HTTP, such as that of the daemon."""

import asyncio
import base64
import json
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

import httpx2

from newton.clock import monotonic_ms
from newton.errors import ConfigError

PATH = "/mcp"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
VERSION_HEADER, VERSION_KEY = "MCP-Protocol-Version", "io.modelcontextprotocol/protocolVersion"
# The parameter that a client of HTTP repeats in the header Mcp-Name, by method.
NAME_PARAMETERS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
BUSY_STATUSES = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)  # nothing was done
RETRY_SECONDS, PAUSE_SECONDS = 20.0, 0.25  # for a daemon that is busy or restarted
PARSE_ERROR, INTERNAL_ERROR = -32700, -32603
LOST_CALL = (
    "The daemon stopped before the call was finished. Check whether its effect was stored, then repeat the call."
)
NO_DAEMON = "The daemon of Newton does not answer. `newton serve` starts one."

Message = dict[str, Any]


class StdioRelay:
    """Sends each message to the server and writes the response; requests are answered concurrently.

    `connect` returns a client of the server that runs now. It is called before each attempt, because a restarted daemon
    has another address. If it raises ConfigError, the error is the answer to the request.
    """

    def __init__(self, connect: Callable[[], Awaitable[httpx2.AsyncClient]], write: Callable[[str], object]) -> None:
        self._connect, self._write = connect, write
        self._running: dict[str, asyncio.Task[None]] = {}
        self._version: str | None = None  # of the protocol, after the handshake

    async def run(self, lines: AsyncGenerator[bytes]) -> None:
        """Relay messages, one per line, until the input ends, and answer all of them."""
        async for line in lines:
            if line.strip():
                self._begin(line)
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _begin(self, line: bytes) -> None:
        """Start a task that relays one message, or cancel the task of the request that a message cancels."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._reply({"id": None, "error": {"code": PARSE_ERROR, "message": "The line is not a JSON-RPC message."}})
            return
        message = cast("Message", message)
        if message.get("method") == "notifications/cancelled":
            cancelled = self._running.get(json.dumps(_parameters(message).get("requestId")))
            if cancelled is not None:
                cancelled.cancel()  # closes the connection, by which a client of HTTP cancels
            return
        key = json.dumps(message["id"]) if "id" in message else f"notification {monotonic_ms()} {id(message)}"
        task = asyncio.create_task(self._relay(message, line))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    async def _relay(self, message: Message, line: bytes) -> None:
        """Send a message to the server; write its response, or an error if there is none, for a message with an id."""
        try:
            response = await self._send(message, line)
            reply = response.json() if response.content else None
        except (httpx2.HTTPError, ValueError) as error:
            is_lost = not isinstance(error, httpx2.ConnectError)
            reply = {"error": {"code": INTERNAL_ERROR, "message": LOST_CALL if is_lost else NO_DAEMON}}
        except ConfigError as error:
            reply = {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
        if "id" in message and isinstance(reply, dict):
            reply = cast("Message", reply)
            self._note_version(message, reply)
            self._reply({**reply, "id": message["id"]})

    async def _send(self, message: Message, line: bytes) -> httpx2.Response:
        """Return the response of the server. Repeat a request that had no effect, for at most RETRY_SECONDS.

        Raises httpx2.HTTPError if there is none.
        """
        deadline = monotonic_ms() + 1_000 * RETRY_SECONDS
        while True:
            is_last = monotonic_ms() > deadline
            try:
                client = await self._connect()
                response = await client.post(PATH, content=line.strip(), headers=self._headers(message))
            except httpx2.TransportError as error:
                was_received = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if is_last or (was_received and message.get("method") == "tools/call"):
                    raise
            else:
                if is_last or response.status_code not in BUSY_STATUSES:
                    return response
            await asyncio.sleep(PAUSE_SECONDS)

    def _headers(self, message: Message) -> Mapping[str, str]:
        """Return the headers of a message: since 2026, they repeat parts of its content."""
        method, parameters = str(message.get("method", "")), _parameters(message)
        meta = parameters.get("_meta")
        version = cast("Message", meta).get(VERSION_KEY) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return HEADERS if self._version is None else {**HEADERS, VERSION_HEADER: self._version}
        headers = {**HEADERS, VERSION_HEADER: version, "Mcp-Method": method}
        if method in NAME_PARAMETERS:
            headers["Mcp-Name"] = _encode_header(str(parameters.get(NAME_PARAMETERS[method], "")))
        return headers

    def _note_version(self, message: Message, reply: Message) -> None:
        if message.get("method") == "initialize" and isinstance(result := reply.get("result"), dict):
            self._version = cast("Message", result).get("protocolVersion")

    def _reply(self, reply: Message) -> None:
        self._write(json.dumps({"jsonrpc": "2.0", **reply}) + "\n")


def _parameters(message: Message) -> Message:
    parameters = message.get("params")
    return cast("Message", parameters) if isinstance(parameters, dict) else {}


def _encode_header(value: str) -> str:
    """Return a value as a header can hold it, as MCP prescribes.

    >>> _encode_header("recall"), _encode_header("é")
    ('recall', '=?base64?w6k=?=')
    """
    if value.isascii() and value.isprintable():
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


async def read_lines() -> AsyncGenerator[bytes]:
    """Yield the lines of standard input.

    A thread reads them, because an event loop cannot wait for a file. The thread ends with the process.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        line = b"\n"
        while line:
            line = sys.stdin.buffer.readline()
            loop.call_soon_threadsafe(queue.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while line := await queue.get():
        yield line


def write_line(line: str) -> None:
    """Write a line to standard output at once."""
    sys.stdout.write(line)
    sys.stdout.flush()
