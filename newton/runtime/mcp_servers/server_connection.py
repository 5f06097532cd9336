"""A connection to one MCP server, kept by a task of its own."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx2
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from newton import __version__
from newton.agent.actions.external_tools import ExternalResult, ExternalTool, ServerProblem
from newton.clock import monotonic_ms
from newton.errors import NewtonError
from newton.memory.representations import one_line
from newton.runtime.mcp_servers.limited_transports import (
    LimitedHttpTransport,
    ServerProcess,
    connect_over_http,
    start_server,
)
from newton.runtime.mcp_servers.tool_checks import (
    MAX_TOOLS,
    ListedTool,
    check_tool,
    cut_output,
    find_output_problem,
    to_result,
)
from newton.setting_types import McpServerSettings

CONNECT_SECONDS, MIN_CONNECT_SECONDS = 15.0, 8.0
CLOSE_SECONDS = 5.0
MAX_PAGES = 20  # of a list of tools
LIST_AGE_MS = 30_000.0  # after which the tools are listed again before a turn
MAX_REASON_CHARS = 300
# Errors of one call: an error response, an output that does not match its schema. Then those of a server.
TOOL_ERRORS = (MCPError, RuntimeError, ValueError)
SERVER_ERRORS = (
    *(OSError, TimeoutError, EOFError, httpx2.HTTPError, NewtonError, ExceptionGroup),
    *(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream),
)


@dataclass(slots=True)
class _StreamTransport:
    """Streams that are open already, in the form in which the client of the SDK takes a transport."""

    streams: Any

    async def __aenter__(self) -> Any:
        return self.streams

    async def __aexit__(self, *_: object) -> None: ...


@dataclass(slots=True, kw_only=True)
class ServerConnection:
    """A connection to an MCP server. If it has failed, `failure` says why, in words that follow "because".

    `tools` are its tools that can be used, by their name at the server; `problems` says what is wrong with the others.
    """

    name: str
    server: McpServerSettings
    tools: Mapping[str, ExternalTool] = field(default_factory=dict[str, ExternalTool])
    problems: Sequence[ServerProblem] = ()
    failure: str | None = None
    _client: Client | None = None
    _transport: ServerProcess | LimitedHttpTransport | None = None
    _task: "asyncio.Task[None] | None" = None
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _listed_at: float = 0.0
    _output_schemas: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Mapping[str, Any] | None])

    @property
    def is_usable(self) -> bool:
        return self._client is not None and self.failure is None and self._end_reason is None

    @property
    def _end_reason(self) -> str | None:
        return self._transport.end_reason if self._transport else None

    async def connect(self) -> None:
        """Connect to the server and list its tools, once. After a failure, `failure` is set; nothing is raised."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await self._ready.wait()

    async def close(self) -> None:
        """Close the connection, and end the server if it was started."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def refresh(self) -> None:
        """List the tools again if the list is old or the server says that it has changed. An error sets `failure`."""
        if not self.is_usable or monotonic_ms() - self._listed_at < LIST_AGE_MS:
            return
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._list_tools()
        except (*TOOL_ERRORS, *SERVER_ERRORS) as error:
            self.failure = self._describe(error, CONNECT_SECONDS)

    async def call(self, tool: ExternalTool, arguments: Mapping[str, object]) -> ExternalResult:
        """Call a tool, and return its result or, with `is_error`, why it failed.

        A tool that has changed since it was listed is not called. If the server fails, the connection cannot be used
        any more.
        """
        if self._listed_at == 0.0:
            await self.refresh()
        known, seconds = self.tools.get(tool.name), self.server.timeout_seconds
        if known is None or known.fingerprint != tool.fingerprint:
            return ExternalResult(
                f"{tool.full_name} has changed since it was offered. It was not called.", is_error=True
            )
        if self._client is None or not self.is_usable:
            reason = self.failure or self._end_reason or "it is not connected"
            return ExternalResult(self._to_message(reason), is_error=True)
        try:
            async with asyncio.timeout(seconds):
                return await self._request(self._client, tool.name, arguments)
        except TOOL_ERRORS as error:
            if self._end_reason is None and not _is_lost(error):  # the call failed, and the server goes on
                return ExternalResult(cut_output(f"{tool.full_name} failed: {error}"), is_error=True)
            self.failure = self._describe(error, seconds)
        except SERVER_ERRORS as error:
            self.failure = self._describe(error, seconds)
        self._stopping.set()
        return ExternalResult(self._to_message(self.failure), is_error=True)

    async def _request(self, client: Client, name: str, arguments: Mapping[str, object]) -> ExternalResult:
        """Call a tool, and check its structured output. Raises what the client raises."""
        # not Client.call_tool, which would check any schema of the server, however long that takes
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(arguments)))
        result = await client.session.send_request(request, CallToolResult)
        schema = None if result.is_error else self._output_schemas.get(name)
        problem = await asyncio.to_thread(find_output_problem, result.structured_content, schema)
        if problem:
            return ExternalResult(cut_output(f"{self.name}__{name} failed: {problem}"), is_error=True)
        return to_result(result)

    def _to_message(self, reason: str) -> str:
        return cut_output(f"The call failed, because of the MCP server {self.name}: {reason}.")

    async def _run(self) -> None:
        """Hold the connection in one task, as the client of the SDK requires, until it is closed."""
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._connect_seconds):
                    transport = await stack.enter_async_context(self._open_transport())
                    client = Client(
                        transport,
                        client_info=Implementation(name="newton", version=__version__),
                        message_handler=self._handle_message,
                        cache=None,
                    )
                    self._client = await stack.enter_async_context(client)
                    await self._list_tools()
                self._ready.set()
                await self._stopping.wait()
        except (*TOOL_ERRORS, *SERVER_ERRORS) as error:
            self.failure = self.failure or self._describe(error, self._connect_seconds)
        finally:
            self._client = None
            self._ready.set()

    @asynccontextmanager
    async def _open_transport(self) -> AsyncGenerator[_StreamTransport]:
        server = self.server.expand()
        if server.command is None:
            async with connect_over_http(server) as (streams, self._transport):
                yield _StreamTransport(streams)
            return
        async with start_server(server) as (streams, self._transport):
            yield _StreamTransport(streams)

    async def _list_tools(self) -> None:
        assert self._client, "the server is connected"
        listed: list[ListedTool] = []
        cursor: str | None = None
        self._listed_at = monotonic_ms()
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            listed += [_to_listed(tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or (len(listed) > MAX_TOOLS and self.server.tools is None):
                break
        self._check_tools(listed)

    def _check_tools(self, listed: Sequence[ListedTool]) -> None:
        """Set `tools` to the listed tools that can be used, and `problems` to what is wrong with the others."""
        tools: dict[str, ExternalTool] = {}
        chosen = [one for one in listed if self.server.tools is None or one.name in self.server.tools]
        problems = [] if len(chosen) <= MAX_TOOLS else [f"it has more than {MAX_TOOLS} tools; the rest is left out"]
        full_names: set[str] = set()
        address, is_trusted = self.server.describe_address(), self.server.trust
        for one in chosen[:MAX_TOOLS]:
            checked = check_tool(one, server=self.name, address=address, is_trusted=is_trusted)
            if isinstance(checked, str):
                problems.append(f"the tool {one.name[:80]!r} is left out: {checked}")
            elif checked.full_name in full_names:
                problems.append(f"the tool {one.name!r} is left out: another tool has its name")
            else:
                full_names.add(checked.full_name)
                tools[one.name] = checked
        self.tools, self.problems = tools, [ServerProblem(self.name, one_line(one)) for one in problems]
        self._output_schemas = {one.name: one.output_schema for one in chosen if one.name in tools}

    @property
    def _connect_seconds(self) -> float:
        return CONNECT_SECONDS if self.server.timeout_seconds >= CONNECT_SECONDS else MIN_CONNECT_SECONDS

    async def _handle_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listed_at = 0.0

    def _describe(self, error: BaseException, seconds: float) -> str:
        """Return why the server has failed, as one line."""
        if self._end_reason:
            return self._end_reason
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if isinstance(error, TimeoutError):
            return f"it did not answer within {seconds:g} s"
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            return f"it sent an invalid message: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        if isinstance(error, FileNotFoundError):
            return f"there is no command {self.server.command!r}"
        return one_line(str(error))[:MAX_REASON_CHARS].rstrip(".") or type(error).__name__


def _is_lost(error: BaseException) -> bool:
    """Return whether an error of a call says that the connection has ended: a new one is opened in a later turn."""
    is_ended = isinstance(error, MCPError) and error.code == INVALID_REQUEST and "terminated" in str(error)
    return is_ended or (isinstance(error, MCPError) and error.code == CONNECTION_CLOSED)


def _to_listed(tool: Any) -> ListedTool:
    annotations: dict[str, Any] = (
        tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    )
    return ListedTool(tool.name, tool.description or "", tool.input_schema, annotations, tool.output_schema)
