"""Commands `newton mcp add|list|remove|test`: the MCP servers whose tools the model may call."""

import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import Parameter

from newton.errors import ConfigError, InputError
from newton.operations.text_format import pluralize
from newton.runtime.cli.daemon_requests import connect_daemon
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import print_notice, say, to_json
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK
from newton.runtime.mcp_servers import servers
from newton.setting_types import McpServerSettings

ServerName = Annotated[str, Parameter(help="Name of the server.")]
MAX_DESCRIPTION = 80  # characters of a tool's description in a list


async def add_server(
    name: Annotated[str, Parameter(help="Name of the server: its tools are called NAME__TOOL.")],
    *command: Annotated[str, Parameter(help="Command that starts the server, with its arguments, after `--`.")],
    url: Annotated[str | None, Parameter(help="URL of a server that runs already (streamable HTTP).")] = None,
    env: Annotated[
        list[str] | None, Parameter(negative=(), help="Environment variable of the command, as NAME=VALUE; repeatable.")
    ] = None,
    header: Annotated[
        list[str] | None, Parameter(negative=(), help="HTTP header for the URL, as NAME=VALUE; repeatable.")
    ] = None,
    trust: Annotated[
        bool,
        Parameter(negative=(), help="Call the tools that the server marks as reading without asking."),
    ] = False,
    tool: Annotated[
        list[str] | None, Parameter(negative=(), help="The only tools to offer to the model; repeatable.")
    ] = None,
) -> None:
    """Add an MCP server, whose tools the model may call after you allowed it.

    `${VARIABLE}` in the command, the URL, the values and the headers stands for an environment variable.

    Example: newton mcp add files --trust -- npx -y @modelcontextprotocol/server-filesystem /home/ana/notes

    Example: newton mcp add tracker --url https://mcp.example.com/mcp --header 'X-Project=boats'
    """
    fields: dict[str, Any] = {"url": url} if url else {}
    if command:
        fields |= {"command": command[0], "args": list(command[1:])}
    fields |= {"env": _parse_pairs(env, "--env")} if env else {}
    fields |= {"headers": _parse_pairs(header, "--header")} if header else {}
    fields |= {"trust": True} if trust else {}
    fields |= {"tools": tool} if tool else {}
    settings = load_settings()
    try:
        servers.add_server(settings.home, name, fields)
    except ConfigError as error:
        raise InputError(error.what, hint=error.hint) from None
    say(f"Added {name}. `newton mcp test {name}` connects to it and lists its tools.")
    print_notice("A daemon that runs has it after its next start.")


async def list_servers(*, json: JsonOption = False) -> None:
    """List the MCP servers of newton.toml, of the data folder, and of the files under `mcp.files`.

    Example: newton mcp list
    """
    configured = servers.load_servers(load_settings())
    if json:
        say(to_json([_server_to_json(name, server) for name, server in configured.items()]))
        return
    if not configured:
        say("No MCP servers. `newton mcp add NAME -- COMMAND` adds one.")
    for name, server in configured.items():
        notes = [*(["trusted to read"] if server.trust else []), *([] if server.enabled else ["disabled"])]
        note = f"  ({', '.join(notes)})" if notes else ""
        say(f"{name:<20} {_format_address(server)}{note}")


async def remove_server(name: ServerName) -> None:
    """Remove an MCP server that `newton mcp add` added. Its permissions stay, and hold if it is added again unchanged.

    Example: newton mcp remove files
    """
    servers.remove_server(load_settings().home, name)
    say(f"Removed {name}.")


async def test_server(name: ServerName, *, json: JsonOption = False) -> int:
    """Connect to an MCP server and list its tools. No tool is called. The daemon connects if it runs.

    Example: newton mcp test files
    """
    settings = load_settings()
    async with connect_daemon(settings) as daemon:
        if daemon is None:
            report = await import_module("newton.runtime.mcp_servers.servers").check_server(settings, name)
            tested = report.model_dump(mode="json")
        else:
            tested = await daemon.post(f"/v1/mcp-servers/{quote(name, safe='')}/test", {})
    status = EXIT_FAILED if tested["failure"] else EXIT_OK
    if json:
        say(to_json(tested))
    elif tested["failure"]:
        say(f"{name} cannot be used: {tested['failure']}.", to_stderr=True)
    else:
        _print_tools(name, tested["tools"], tested["problems"])
    return status


def _print_tools(name: str, tools: Sequence[Mapping[str, Any]], problems: Sequence[str]) -> None:
    for tool in tools:
        kind = "reads" if tool["runs_freely"] else "reads, asks" if tool["reads"] else "acts, asks"
        say(f"{tool['name']:<28} {kind:<12} {' '.join(tool['description'].split())[:MAX_DESCRIPTION]}")
    for problem in problems:
        print_notice(f"{name}: {problem}.")
    say(f"{name} works: {pluralize(len(tools), 'tool')}.")


def _parse_pairs(pairs: list[str], option: str) -> dict[str, str]:
    parsed = [pair.partition("=") for pair in pairs]
    for name, sign, _ in parsed:
        if not name or not sign:
            raise InputError(f"{name!r} is not NAME=VALUE.", hint=f"Write {option} NAME=VALUE.")
    return {name: value for name, _, value in parsed}


def _format_address(server: McpServerSettings) -> str:
    """Return the URL or the command of a server. Values of its environment and headers are not shown."""
    return server.url or shlex.join((server.command or "", *server.args))


def _server_to_json(name: str, server: McpServerSettings) -> dict[str, object]:
    fields = server.model_dump(mode="json", exclude={"env", "headers"})
    return {"name": name, **fields, "env": sorted(server.env), "headers": sorted(server.headers)}
