"""Commands `newton permissions allow` and `deny`: only a person gives permissions, at the terminal."""

import json as json_module
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.outbound_guard import EXACT_MARK, LINK_SERVER, create_link_permission
from newton.errors import NotFoundError, ProviderError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.cli.printing import say

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices

ServerName = Annotated[str, Parameter(help="Name of the server.")]
ToolName = Annotated[str, Parameter(help="Name of the tool at the server.")]


async def allow_tool(server: ServerName, tool: ToolName, *, agent: AgentOption = None) -> None:
    """Allow a tool of a server as it is now, in all sessions and through all interfaces.

    If its description, its schema or its server changes, the permission does not hold any more.

    `TOOL#HASH` allows a call that was held back, once, and `@links HOST` links to a host; the note on it names them.

    Example: newton permissions allow files write_file

    Example: newton permissions allow @links maps.example.com
    """
    async with open_agent(load_settings(agent)) as newton:
        is_link = server == LINK_SERVER
        found = create_link_permission(tool) if is_link else await _find_tool(newton, server, tool)
        permission_id = await newton.permissions("cli").allow(found)
    say(f"Allowed {server} {tool} ({short_id(permission_id)}): {' '.join(found.description.split())[:200]}")
    formatting.print_notice(f"Arguments: {json_module.dumps(found.definition.function['parameters'])}")


async def deny_tool(server: ServerName, tool: ToolName, *, agent: AgentOption = None) -> None:
    """Forbid a tool of a server, also after it has changed. Nobody is asked any more.

    Example: newton permissions deny files delete_file
    """
    async with open_agent(load_settings(agent)) as newton:
        permission_id = await newton.permissions("cli").deny(server, tool)
    say(f"Forbidden: {server} {tool} ({short_id(permission_id)}).")


async def _find_tool(newton: "AgentServices", server: str, tool: str) -> ExternalTool:
    """Return a tool as its server lists it now; for `TOOL#HASH`, limited to one call.

    Raises NotFoundError, and ProviderError if the server fails.
    """
    connection = await newton.mcp_servers.test(server)
    if connection.failure:
        hint = f"`newton mcp test {server}` tries it again."
        raise ProviderError(f"The MCP server {server} cannot be used: {connection.failure}.", hint=hint)
    name = tool.partition(EXACT_MARK)[0]
    if name not in connection.tools:
        names = ", ".join(connection.tools) or "none"
        raise NotFoundError(f"The MCP server {server} has no tool {tool!r}.", hint=f"Its tools are: {names}.")
    return replace(connection.tools[name], name=tool)
