"""Command `newton mcp serve`: the MCP server over standard input and output."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

from cyclopts import Parameter

from newton.errors import NewtonError
from newton.runtime.access.tokens import TokenScope
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli.formatting import print_notice
from newton.runtime.cli.options import AgentOption, check_session_name, load_settings
from newton.runtime.logs import configure
from newton.runtime.wiring import AgentServices


@dataclass(frozen=True, slots=True)
class LocalMcpCaller:
    """The MCP client that started this process, and its session. It has the rights of every token scope."""

    newton: AgentServices
    session: str | None

    @property
    def deadline(self) -> None:
        return None

    def has_scope(self, scope: TokenScope) -> bool:
        return True


async def serve_mcp(
    *,
    session: Annotated[
        str | None,
        Parameter(help="Session of the tool calls that name none; created by the first that stores something."),
    ] = None,
    agent: AgentOption = None,
) -> None:
    """Serve MCP over standard input and output, for a client that starts this command as a subprocess.

    Example: newton mcp --agent work --session planning
    """
    name = check_session_name(session)
    configure("plain")  # standard output is reserved for the protocol
    async with AsyncExitStack() as stack:
        try:
            opened = open_newton(load_settings(agent), long_running=True, on_notice=print_notice)
            newton = await stack.enter_async_context(opened)
        except NewtonError as error:
            _refuse_first_request(error)
            raise
        earlier = asyncio.ensure_future(_process_pending(newton))  # must not delay the handshake
        try:
            await import_module("newton.runtime.mcp.server").serve_stdio(LocalMcpCaller(newton, name))
        finally:
            earlier.cancel()
            with suppress(asyncio.CancelledError):
                await earlier
        await _process_pending(newton)


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


async def _process_pending(newton: AgentServices) -> None:
    """Extract facts from idle sessions and embed pending memories, as the jobs of a daemon do."""
    maintenance = newton.maintenance("mcp")
    await maintenance.learn_if_possible()
    await maintenance.process_pending()
