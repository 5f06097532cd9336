"""The MCP server over HTTP at /mcp, with the same tokens as the HTTP API."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from newton.deadline import RequestDeadline
from newton.errors import DaemonStoppedError, NewtonError
from newton.memory.hygiene import clean_ref
from newton.runtime.access.tokens import TokenScope
from newton.runtime.api import problems
from newton.runtime.api.auth import BEARER, AuthenticatedCaller, get_caller
from newton.runtime.tools.tool_sets import parse_tool_sets
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

CALLER_KEY = "newton.caller"  # key of the HttpMcpCaller in the ASGI scope of a request
SESSION_HEADER, TOOLS_PARAMETER = "X-Newton-Session", "tools"


@dataclass(frozen=True, slots=True)
class HttpMcpCaller:
    """The sender of an MCP request over HTTP, the session in its header, and the sets of tools in its URL."""

    caller: AuthenticatedCaller
    session: str | None
    tool_sets: frozenset[str]

    @property
    def newton(self) -> AgentServices:
        return self.caller.newton

    @property
    def deadline(self) -> RequestDeadline:
        return self.caller.deadline

    def has_scope(self, scope: TokenScope) -> bool:
        return self.caller.has_scope(scope)


class HttpTransport:
    """The ASGI application of the MCP server. The first request imports the MCP SDK, which takes over a second."""

    def __init__(self) -> None:
        self._open_lock = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._manager_task: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            agent, user, project = (request.headers.get(f"X-Newton-{name}") for name in ("Agent", "User", "Project"))
            caller = await get_caller(request, await BEARER(request), agent, user, project)
            session = request.headers.get(SESSION_HEADER)
            sets = parse_tool_sets(request.query_params.get(TOOLS_PARAMETER))
            scope[CALLER_KEY] = HttpMcpCaller(caller, session and clean_ref(session, what="session"), sets)
            if self._is_closed:
                raise DaemonStoppedError("The daemon is shutting down.", hint="Retry when the daemon runs again.")
        except NewtonError as error:
            await problems.error_response(error, scope["path"])(scope, receive, send)
            return
        await (await self._get_manager()).handle_request(scope, receive, send)

    async def close(self) -> None:
        """Stop the MCP server. Later requests get an error that asks the client to retry."""
        self._is_closed = True
        if self._manager_task:
            self._manager_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._manager_task

    async def _get_manager(self) -> "StreamableHTTPSessionManager":
        async with self._open_lock:
            manager = self._manager
            if manager is None:
                module = await asyncio.to_thread(import_module, "newton.runtime.mcp.server")
                manager, ready = module.build_session_manager(CALLER_KEY), asyncio.Event()
                self._manager_task = asyncio.create_task(_run_manager(manager, ready))
                await ready.wait()
                self._manager = manager
            return manager


@asynccontextmanager
async def mount_mcp(app: FastAPI) -> AsyncGenerator[None]:
    """Add the route /mcp to the application, and stop the MCP server after the `with` block."""
    transport = HttpTransport()
    # a stateless server answers GET and DELETE with 405, as the specification requires
    app.router.routes.append(Route(problems.MCP_PATH, transport, methods=["POST"], include_in_schema=False))
    try:
        yield
    finally:
        await transport.close()


async def _run_manager(manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()
