"""The connections of one process to all MCP servers that the user lists."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from newton.agent.actions.external_tools import ExternalResult, ExternalTool, ServerProblem
from newton.clock import monotonic_ms
from newton.errors import NotFoundError
from newton.setting_types import McpServerSettings

if TYPE_CHECKING:
    from newton.runtime.mcp_servers.server_connection import ServerConnection

# After these times a server that could not be connected is tried again; each failure in a row doubles the first.
RETRY_MS, MAX_RETRY_MS = 30_000.0, 900_000.0


@dataclass(slots=True, kw_only=True)
class McpServerPool:
    """An ExternalToolSource for MCP servers. They are connected at the first use, and again after they have failed."""

    servers: Mapping[str, McpServerSettings]
    _connections: "dict[str, ServerConnection]" = field(default_factory=dict[str, "ServerConnection"])
    _retry_at: dict[str, float] = field(default_factory=dict[str, float])
    _failures: dict[str, int] = field(default_factory=dict[str, int])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def list_tools(self, agent: str, *, is_user_memory: bool = False) -> Sequence[ExternalTool]:
        """Return the tools of all servers that the agent has, in the order of the settings."""
        names = [
            name
            for name, server in self.servers.items()
            if server.enabled and (not is_user_memory if server.agents is None else agent in server.agents)
        ]
        if not names:
            return ()
        async with self._lock:
            await asyncio.gather(*map(self._ensure_connected, names))
        usable = [self._connections[name] for name in names if self._connections[name].is_usable]
        return [tool for connection in usable for tool in connection.tools.values()]

    def is_offered(self, tool: ExternalTool, frame: str | None) -> bool:
        """Return whether the lists of the server allow the tool in a frame: a frame without a list allows all."""
        allowed = self.servers[tool.server].frames.get(frame or "")
        return allowed is None or tool.name in allowed

    @property
    def problems(self) -> Sequence[ServerProblem]:
        failed = [
            ServerProblem(name, f"it cannot be used: {one.failure}")
            for name, one in self._connections.items()
            if one.failure
        ]
        return [*failed, *(problem for one in self._connections.values() for problem in one.problems)]

    async def call(self, tool: ExternalTool, arguments: Mapping[str, object]) -> ExternalResult:
        connection = self._connections.get(tool.server)
        if connection is None:
            return ExternalResult(f"The MCP server {tool.server} is not connected.", is_error=True)
        return await connection.call(tool, arguments)

    async def test(self, name: str) -> "ServerConnection":
        """Connect to one server, also if it is not enabled, and return the connection. Raises NotFoundError."""
        if name not in self.servers:
            hint = "`newton mcp list` lists the servers."
            raise NotFoundError(f"There is no MCP server {name!r}.", hint=hint)
        self._retry_at.pop(name, None)
        async with self._lock:
            await self._ensure_connected(name)
        return self._connections[name]

    async def close(self) -> None:
        """Close all connections, and end the servers that were started."""
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(one.close() for one in connections))

    async def _ensure_connected(self, name: str) -> None:
        known = self._connections.get(name)
        if known is not None and known.is_usable:
            await known.refresh()
        if known is None or not known.is_usable:
            await self._reconnect(name, known)

    async def _reconnect(self, name: str, known: "ServerConnection | None") -> None:
        """Connect to a server, unless it could not be connected a short time ago."""
        if monotonic_ms() < self._retry_at.get(name, 0.0):
            return
        if known is not None:
            await known.close()
        # imported late: the SDK takes a second to load
        module = import_module("newton.runtime.mcp_servers.server_connection")
        connection: ServerConnection = module.ServerConnection(name=name, server=self.servers[name])
        self._connections[name] = connection
        await connection.connect()
        failures = self._failures[name] = self._failures.get(name, 0) + 1 if connection.failure else 0
        if failures:
            self._retry_at[name] = monotonic_ms() + min(RETRY_MS * 2 ** min(failures - 1, 10), MAX_RETRY_MS)
