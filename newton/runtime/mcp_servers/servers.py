"""The configured MCP servers: which there are, their connections, and what a check of one finds."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from newton.agent.actions.external_tools import ExternalResult, ExternalTool, ServerProblem
from newton.clock import monotonic_ms
from newton.environment import SERVERS_FILE
from newton.errors import ConfigError, InputError, NotFoundError
from newton.file_access import read_regular
from newton.setting_types import McpServerName, McpServerSettings
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.runtime.mcp_servers.server_connection import ServerConnection

SERVERS_KEY = "mcpServers"
MAX_FILE_BYTES = 10_000_000
# What a file of another program may not set: a program's file is often part of a repository.
PERSONAL_FIELDS = frozenset({"trust", "agents"})

_NAME = TypeAdapter[str](McpServerName)


def load_servers(settings: Settings) -> dict[str, McpServerSettings]:
    """Return the configured MCP servers by name, from newton.toml, the data folder, and the files under `mcp.files`.

    If several of them have a server, the fields of the first one take precedence. Raises ConfigError for a file that
    cannot be read, and for an invalid server.
    """
    merged: dict[str, dict[str, Any]] = {}
    for path in reversed(settings.mcp.files):
        for name, fields in read_server_file(path.expanduser()).items():
            merged[name] = {key: value for key, value in fields.items() if key not in PERSONAL_FIELDS}
    for name, fields in read_own_servers(settings.home).items():
        merged[name] = {**merged.get(name, {}), **fields}
    for name, server in settings.mcp.servers.items():
        merged[name] = {**merged.get(name, {}), **server.model_dump(exclude_unset=True)}
    return {name: validate_server(name, fields) for name, fields in merged.items()}


def read_own_servers(home: Path) -> dict[str, dict[str, Any]]:
    """Return the servers that `newton mcp add` stored in the data folder, by name."""
    path = home / SERVERS_FILE
    return read_server_file(path) if path.exists() else {}


def read_server_file(path: Path) -> dict[str, dict[str, Any]]:
    """Return the fields of each server in a JSON file of the form `{"mcpServers": {NAME: {...}}}`.

    Fields that Newton does not have are ignored, because other programs write them. Raises ConfigError if the file
    cannot be read or has another form.
    """
    try:
        value = json.loads(read_regular(path, max_bytes=MAX_FILE_BYTES))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", hint="Correct mcp.files.") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid JSON: {error}.", hint="Correct the file.") from None
    servers = cast("dict[str, object]", value).get(SERVERS_KEY) if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f"{path} has no object {SERVERS_KEY!r}.", hint=f'Write {{"{SERVERS_KEY}": {{...}}}}.')
    entries = cast("dict[str, object]", servers)
    return {name: _select_fields(name, entry, path) for name, entry in entries.items()}


def _select_fields(name: str, entry: object, path: Path) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError(f"The server {name!r} in {path} is not an object.", hint="Give it a command or a url.")
    fields = cast("dict[str, Any]", entry)
    known = {key: value for key, value in fields.items() if key in McpServerSettings.model_fields}
    return {**known, **({"enabled": False} if fields.get("disabled") is True else {})}


def validate_server(name: str, fields: Mapping[str, Any]) -> McpServerSettings:
    """Return the settings of an MCP server, from its fields. Raises ConfigError for an invalid name or field."""
    try:
        _NAME.validate_python(name)
        server = McpServerSettings.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "name"
        hint = "A name has up to 30 lowercase letters, digits, - and _." if place == "name" else "Correct the field."
        raise ConfigError(f"Invalid MCP server {name!r}: {place}: {first['msg']}.", hint=hint) from None
    if (server.command is None) == (server.url is None):
        hint = "Give `command`, to start it, or `url`, to connect to it."
        raise ConfigError(f"The MCP server {name!r} needs a command or a url, and not both.", hint=hint)
    if server.url is not None and not server.url.startswith(("http://", "https://", "${")):
        raise ConfigError(f"The url of the MCP server {name!r} is not http or https.", hint="Correct the url.")
    return server


def add_server(home: Path, name: str, fields: Mapping[str, Any]) -> None:
    """Store an MCP server in the data folder. Raises ConfigError if it is invalid, and InputError if it exists."""
    validate_server(name, fields)
    servers = read_own_servers(home)
    if name in servers:
        raise InputError(f"There is an MCP server {name!r} already.", hint=f"`newton mcp remove {name}` removes it.")
    _write(home, {**servers, name: dict(fields)})


def remove_server(home: Path, name: str) -> None:
    """Remove an MCP server from the data folder. Raises NotFoundError if it is not listed there."""
    servers = read_own_servers(home)
    if name not in servers:
        hint = "`newton mcp list` lists the servers. One of newton.toml or of a file is removed there."
        raise NotFoundError(f"No MCP server {name!r} was added by `newton mcp add`.", hint=hint)
    _write(home, {key: value for key, value in servers.items() if key != name})


def _write(home: Path, servers: Mapping[str, object]) -> None:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / SERVERS_FILE
    path.touch(mode=0o600)  # it may hold secrets in `env` and `headers`
    path.write_text(json.dumps({SERVERS_KEY: servers}, indent=2) + "\n", encoding="utf-8")


# After these times a server that could not be connected is tried again; each failure in a row doubles the first.
RETRY_MS, MAX_RETRY_MS = 30_000.0, 900_000.0


@dataclass(slots=True, kw_only=True)
class McpServerPool:
    """The MCP servers as a source of tools. They are connected at the first use, and again after they have failed."""

    servers: Mapping[str, McpServerSettings]
    _connections: "dict[str, ServerConnection]" = field(default_factory=dict[str, "ServerConnection"])
    _retry_at: dict[str, float] = field(default_factory=dict[str, float])
    _failures: dict[str, int] = field(default_factory=dict[str, int])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def list_tools(self, agent: str, *, is_user_memory: bool = False) -> Sequence[ExternalTool]:
        """Return the tools of all servers that the settings allow the agent, in their order.

        For the separate memory of a user (`is_user_memory`), only servers whose settings name the agent are allowed.
        """
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
        """Return whether the server's settings allow the tool in a frame (kind of input), which by default they do."""
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
        """Connect to one server, also if it is not enabled, and return the connection.

        Raises NotFoundError for an unknown name.
        """
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


class CheckedTool(BaseModel):
    """A tool of a server: whether it only reads, and whether it may be called without asking (`runs_freely`)."""

    model_config = ConfigDict(frozen=True)

    name: str
    full_name: str
    description: str
    reads: bool
    runs_freely: bool
    parameters: object


class ServerCheckResult(BaseModel):
    """The result of testing an MCP server: its usable tools, and what is wrong with others (`problems`).

    `failure` is why the server cannot be used; None if it can.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    failure: str | None
    tools: list[CheckedTool]
    problems: list[str]


async def check_server(settings: Settings, name: str) -> ServerCheckResult:
    """Connect to the MCP server with this name in the settings, and return what it offers.

    Raises NotFoundError for an unknown name.
    """
    pool = McpServerPool(servers=load_servers(settings))
    try:
        connection = await pool.test(name)
        return ServerCheckResult(
            name=name,
            failure=connection.failure,
            tools=list(map(_to_tool, connection.tools.values())),
            problems=[one.reason for one in connection.problems],
        )
    finally:
        await pool.close()


def _to_tool(tool: ExternalTool) -> CheckedTool:
    return CheckedTool(
        name=tool.name,
        full_name=tool.full_name,
        description=tool.description,
        reads=tool.is_read,
        runs_freely=tool.runs_freely,
        parameters=tool.definition.function["parameters"],
    )
