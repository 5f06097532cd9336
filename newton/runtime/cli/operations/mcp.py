"""Command `newton mcp serve`: the MCP server over standard input and output.

Beside a daemon, this process only relays messages to it and loads neither the database nor the models.
"""

import json
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

import httpx2
from cyclopts import Parameter

from newton.errors import ConfigError, NewtonError
from newton.runtime.cli.daemon_requests import read_differences
from newton.runtime.cli.options import AgentOption, check_session_name, load_settings
from newton.runtime.local_daemon import LocalDaemon, find_daemon
from newton.runtime.mcp.stdio_relay import StdioRelay, read_lines, write_line
from newton.settings import Settings

SESSION_HEADER, PROJECT_HEADER = "X-Newton-Session", "X-Newton-Project"


@dataclass(slots=True, kw_only=True)
class McpConnector:
    """Finds the MCP server for each message: that of the running daemon, or `local`, a server in this process.

    `local` is None until it is open; then it is used for good. When a daemon has been started, its settings are first
    compared with those of this process, because it might use another database. `tools` are the sets of tools to offer.
    """

    settings: Settings
    session: str | None
    stack: AsyncExitStack
    tools: str | None = None
    local: httpx2.AsyncClient | None = None
    _daemon: LocalDaemon | None = None
    _client: httpx2.AsyncClient | None = None

    async def connect(self) -> httpx2.AsyncClient:
        """Return a client of the server.

        Raises httpx2.ConnectError while a daemon that was used does not run, and ConfigError if it runs again with
        other settings.
        """
        if self.local is not None:
            return self.local
        daemon = find_daemon(self.settings.home)
        if daemon is None:
            raise httpx2.ConnectError("no daemon runs")
        if self._client is None or daemon != self._daemon:
            await _require_equal_settings(daemon)
            named = {SESSION_HEADER: self.session, PROJECT_HEADER: self.settings.project}
            headers = {name: value for name, value in named.items() if value is not None}
            query = None if self.tools is None else {"tools": self.tools}
            client = daemon.open_client(self.settings.agent, headers=headers, query=query)
            self._daemon, self._client = daemon, await self.stack.enter_async_context(client)
        return self._client

    async def can_use_daemon(self) -> bool:
        """Return whether a daemon runs with the settings of this process, and headers can hold the names."""
        if not f"{self.settings.agent}{self.session or ''}{self.settings.project or ''}".isascii():
            return False
        daemon = find_daemon(self.settings.home)
        try:
            return daemon is not None and not await read_differences(daemon)
        except NewtonError:
            return False


async def serve_mcp(
    *,
    session: Annotated[
        str | None,
        Parameter(help="Session of the tool calls that name none; created by the first that stores something."),
    ] = None,
    tools: Annotated[
        str | None,
        Parameter(help="Sets of tools beside the core, such as decisions or memory,sessions; `all` offers every tool."),
    ] = None,
    agent: AgentOption = None,
) -> None:
    """Serve MCP over standard input and output, for a client that starts this command as a subprocess.

    If a daemon runs with the same settings, it answers.

    Example: newton mcp --agent work --session planning
    """
    name = check_session_name(session)
    async with AsyncExitStack() as stack:
        try:
            connector = McpConnector(settings=load_settings(agent), session=name, tools=tools, stack=stack)
            if not await connector.can_use_daemon():
                connector.local = await stack.enter_async_context(_open_local_server(connector))
        except NewtonError as error:
            _refuse_first_request(error)
            raise
        await StdioRelay(connector.connect, write_line).run(read_lines())


async def _require_equal_settings(daemon: LocalDaemon) -> None:
    try:
        differing = await read_differences(daemon)
    except NewtonError as error:
        raise httpx2.ConnectError(str(error)) from error
    if differing:
        raise ConfigError(
            f"The daemon was restarted with another value of {', '.join(differing)}.",
            hint="Restart this MCP server with the settings of the daemon.",
        )


def _open_local_server(connector: McpConnector) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    """Open the agent in this process. The modules for it load slowly."""
    import_module("newton.runtime.logs").configure("plain")  # standard output is reserved for the protocol
    on_notice = import_module("newton.runtime.cli.formatting").print_notice
    open_server = import_module("newton.runtime.mcp.local_server").open_local_server
    return open_server(connector.settings, connector.session, connector.tools, on_notice)


def _refuse_first_request(error: NewtonError) -> None:
    """Answer the first request on standard input with the error, because a client may hide standard error."""
    if sys.stdin.isatty():
        return
    try:
        request = json.loads(sys.stdin.readline())
    except (OSError, ValueError):
        return
    if isinstance(request, dict) and "id" in request:
        response = import_module("newton.runtime.api.problems").to_json_rpc_error(error) | {"id": request["id"]}
        sys.stdout.write(f"{json.dumps(response)}\n")
        sys.stdout.flush()
