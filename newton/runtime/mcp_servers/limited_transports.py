"""Transports of the MCP client with limits: a server can neither fill the memory nor leave a process behind."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from newton.setting_types import McpServerSettings

MAX_MESSAGE_BYTES = 4_000_000  # of one message
MAX_RECEIVED_BYTES, MAX_RECEIVED_LINES = 16_000_000, 10_000  # between two requests
LINES_PER_EVENT = 4  # of a stream over HTTP: event, id, data, and an empty line
MAX_ERROR_BYTES = 2_000  # of the standard error, kept for messages
STOP_SECONDS = 1.0  # for a server to exit after its input is closed, and again after SIGTERM
HTTP_TIMEOUT = httpx2.Timeout(30.0, read=300.0)

Incoming = SessionMessage | Exception
TransportStreams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@dataclass(slots=True)
class ServerProcess:
    """A running MCP server with its standard streams. `end_reason` says why the connection has ended; None before.

    `error_tail` is the end of its standard error. `received` and `received_lines` count its output for the limits.
    """

    process: Process
    received: int = 0
    received_lines: int = 0
    error_tail: bytearray = field(default_factory=bytearray)
    end_reason: str | None = None
    is_stopped: bool = False

    async def read_messages(self, incoming: MemoryObjectSendStream[Incoming]) -> None:
        """Pass on the lines of the server's output that are messages, up to its end or a limit."""
        assert self.process.stdout, "it is a pipe"
        async with incoming:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while (line := await self._read_line()) is not None:
                    with suppress(ValueError):  # servers also print other lines
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                        await incoming.send(SessionMessage(message))
        if self.end_reason and self.process.returncode is None:
            _send_signal(self.process, signal.SIGKILL)

    async def _read_line(self) -> bytes | None:
        """Return the next line of output; None, with `end_reason` set, at the end of the output and above a limit."""
        assert self.process.stdout, "it is a pipe"
        try:
            line = await self.process.stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            if not self.is_stopped:  # else the exit is no reason: the server ends because its input was closed
                self.end_reason = self.end_reason or await self._describe_exit()
            return None
        except asyncio.LimitOverrunError:
            self.end_reason = f"it sent a message of more than {MAX_MESSAGE_BYTES // 1_000_000} MB"
            return None
        self.received, self.received_lines = self.received + len(line), self.received_lines + 1
        if self.received_lines > MAX_RECEIVED_LINES:
            self.end_reason = f"it sent more than {MAX_RECEIVED_LINES:,} messages for one request"
            return None
        if self.received > MAX_RECEIVED_BYTES:
            self.end_reason = f"it sent more than {MAX_RECEIVED_BYTES // 1_000_000} MB for one request"
            return None
        return line

    async def _describe_exit(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await self.process.wait()
        await asyncio.sleep(0)  # the end of the standard error may still be read
        last = bytes(self.error_tail).decode(errors="replace").strip().splitlines()
        said = f": {last[-1][:200]}" if last else ""
        return f"it has exited with status {self.process.returncode}{said}"

    async def read_errors(self) -> None:
        """Keep the end of the server's standard error."""
        assert self.process.stderr, "it is a pipe"
        while chunk := await self.process.stderr.read(65_536):
            self.error_tail += chunk
            del self.error_tail[:-MAX_ERROR_BYTES]

    async def write_messages(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        assert self.process.stdin, "it is a pipe"
        async with outgoing:
            with suppress(ConnectionError):
                async for item in outgoing:
                    self.received = self.received_lines = 0
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self.process.stdin.write(f"{line}\n".encode())
                    await self.process.stdin.drain()

    async def stop(self) -> None:
        """Close the server's input; end it and its children if it does not exit by itself."""
        assert self.process.stdin, "it is a pipe"
        self.is_stopped = True
        self.process.stdin.close()
        for signal_number in (signal.SIGTERM, signal.SIGKILL, None):
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self.process.wait()
                break
            if signal_number:
                _send_signal(self.process, signal_number)
        _send_signal(self.process, signal.SIGKILL)  # children that outlive it

    async def drain(self) -> None:
        """Read what the ended server has left in its pipe, because asyncio closes a pipe only once it is empty."""
        assert self.process.stdout, "it is a pipe"
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(STOP_SECONDS):
                while await self.process.stdout.read(MAX_MESSAGE_BYTES):
                    pass


@asynccontextmanager
async def start_server(server: McpServerSettings) -> AsyncGenerator[tuple[TransportStreams, ServerProcess]]:
    """Start the command of an MCP server, and yield its message streams and the process. It ends with the block.

    The command gets the environment variables in the settings of the server and a few basic ones, no others. Raises
    OSError if it cannot be started.
    """
    assert server.command, "the server has a command"
    process = await asyncio.create_subprocess_exec(
        *(server.command, *server.args),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=MAX_MESSAGE_BYTES,
        env={**get_default_environment(), **server.env},
        cwd=server.cwd,
        start_new_session=True,
    )
    running = ServerProcess(process)
    # the process puts messages of the server into `incoming`, which the client reads from `received`; the client puts
    # its own into `outgoing`, which the process reads from `sent`
    incoming, received = anyio.create_memory_object_stream[Incoming](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.read_messages, incoming)
            tasks.start_soon(running.write_messages, sent)
            tasks.start_soon(running.read_errors)
            try:
                yield (received, outgoing), running
            finally:
                received.close()
                outgoing.close()
                with anyio.CancelScope(shield=True):
                    await running.stop()
                tasks.cancel_scope.cancel()
    finally:
        _send_signal(process, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await running.drain()


def _send_signal(process: Process, signal_number: signal.Signals) -> None:
    """Send a signal to the process group of a server, which `start_new_session` created."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal_number)


@asynccontextmanager
async def connect_over_http(
    server: McpServerSettings,
) -> AsyncGenerator[tuple[TransportStreams, "LimitedHttpTransport"]]:
    """Connect to the URL of an MCP server (streamable HTTP), and yield its message streams and the transport.

    Redirects to other origins are not followed.
    """
    assert server.url, "the server has a URL"
    transport = LimitedHttpTransport(httpx2.AsyncHTTPTransport())
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=HTTP_TIMEOUT, transport=transport) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams, transport  # type: ignore[misc]  # the streams of the client carry a context as well


@dataclass(slots=True)
class LimitedHttpTransport(httpx2.AsyncBaseTransport):
    """An HTTP transport that accepts at most MAX_RECEIVED_BYTES and MAX_RECEIVED_LINES between two requests.

    A message of the client (a POST) is a request. A stream that the client opens again after it has ended is not. A
    compressed response is refused, because its size is not known before it fills the memory. `end_reason` says which
    limit was exceeded; None before.
    """

    inner: httpx2.AsyncBaseTransport
    received: int = 0
    received_lines: int = 0
    end_reason: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            self.received = self.received_lines = 0
        self.check()
        request.headers["Accept-Encoding"] = "identity"
        response = await self.inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("its response is compressed, although the request asks for one that is not")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream), "an asynchronous transport has such a stream"
        response.stream = _LimitedStream(stream, self)
        return response

    def check(self) -> None:
        """Raise ReadError if more than the limits was received."""
        if self.received > MAX_RECEIVED_BYTES:
            self.end_reason = f"it sent more than {MAX_RECEIVED_BYTES // 1_000_000} MB for one request"
        elif self.received_lines > MAX_RECEIVED_LINES * LINES_PER_EVENT:
            self.end_reason = f"it sent more than {MAX_RECEIVED_LINES:,} messages for one request"
        if self.end_reason:
            raise httpx2.ReadError(self.end_reason)

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass(slots=True)
class _LimitedStream(httpx2.AsyncByteStream):
    inner: httpx2.AsyncByteStream
    transport: LimitedHttpTransport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.inner:
            self.transport.received += len(chunk)
            self.transport.received_lines += chunk.count(b"\n")
            self.transport.check()
            yield chunk

    async def aclose(self) -> None:
        await self.inner.aclose()
