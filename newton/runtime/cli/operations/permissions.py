"""Commands `newton permissions`: which tools of servers the agent may call."""

import json as json_module
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.agent.actions.external_tools import ExternalTool
from newton.errors import NotFoundError, ProviderError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.permission_views import PermissionInfo, to_action_info, to_permission_info

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices

ServerName = Annotated[str, Parameter(help="Name of the server.")]
ToolName = Annotated[str, Parameter(help="Name of the tool at the server.")]
VERDICTS = {"allow": "allowed", "deny": "forbidden"}


async def list_permissions(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List which tools of servers the agent may call without asking, and which it may not call.

    Example: newton permissions
    """
    async with open_agent(load_settings(agent)) as newton:
        permissions = [to_permission_info(one) for one in await newton.permissions("cli").list_permissions()]
    if json:
        formatting.print_json([one.model_dump(mode="json") for one in permissions])
        return
    if not permissions:
        say(
            "No permissions. The chat asks before a tool of a server acts; `newton permissions allow` allows it before."
        )
    for one in permissions:
        say(format_permission(one))


async def allow_tool(server: ServerName, tool: ToolName, *, agent: AgentOption = None) -> None:
    """Allow a tool of a server as it is now, in all sessions and through all interfaces.

    If its description, its schema or its server changes, the permission does not hold any more.

    Example: newton permissions allow files write_file
    """
    async with open_agent(load_settings(agent)) as newton:
        found = await _find_tool(newton, server, tool)
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


async def revoke_permission(
    permission: Annotated[str, Parameter(help="Id of the permission, the end of its id, or 'SERVER TOOL'.")],
    *,
    agent: AgentOption = None,
) -> None:
    """Revoke a permission or a prohibition: the next call of the tool asks again.

    Example: newton permissions revoke "files write_file"
    """
    async with open_agent(load_settings(agent)) as newton:
        revoked = await newton.permissions("cli").revoke(permission)
    say(format_revocation(to_permission_info(revoked)))


async def list_actions(
    *,
    limit: Annotated[int, Parameter(help="Maximum number of calls.")] = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the latest calls of tools of servers, with how each was permitted and how it ended.

    Example: newton permissions actions --limit 50
    """
    async with open_agent(load_settings(agent)) as newton:
        actions = [to_action_info(one) for one in await newton.actions("cli").list_actions(limit)]
    if json:
        formatting.print_json([one.model_dump(mode="json") for one in actions])
        return
    if not actions:
        say("No tool of a server was called.")
    for one in actions:
        say(f"{one.finished_at:%Y-%m-%d %H:%M}  {one.server} {one.tool:<24} {one.permission:<8} {one.outcome}")


def format_permission(permission: PermissionInfo) -> str:
    """Return a permission as one line: its short id, the tool, the verdict, for which sessions, and since when."""
    scope = "" if permission.session is None else f" in the session {permission.session}"
    basis = " (a read of a trusted server)" if permission.source == "trust" else ""
    verdict = f"{VERDICTS[permission.verdict]}{scope}{basis} since {permission.created_at:%Y-%m-%d}"
    return f"{short_id(permission.permission_id)}  {permission.server} {permission.tool:<24} {verdict}"


def format_revocation(revoked: PermissionInfo) -> str:
    return f"Revoked: {revoked.server} {revoked.tool} is no longer {VERDICTS[revoked.verdict]}."


async def _find_tool(newton: "AgentServices", server: str, tool: str) -> ExternalTool:
    """Return a tool as its server lists it now. Raises NotFoundError, and ProviderError if the server fails."""
    connection = await newton.mcp_servers.test(server)
    if connection.failure:
        hint = f"`newton mcp test {server}` tries it again."
        raise ProviderError(f"The MCP server {server} cannot be used: {connection.failure}.", hint=hint)
    if tool not in connection.tools:
        names = ", ".join(connection.tools) or "none"
        raise NotFoundError(f"The MCP server {server} has no tool {tool!r}.", hint=f"Its tools are: {names}.")
    return connection.tools[tool]
