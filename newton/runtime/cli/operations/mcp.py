"""`newton mcp`: the memory for a program that speaks MCP."""

from dataclasses import dataclass
from importlib import import_module

from newton.runtime.access.tokens import TokenScope
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.logs import configure
from newton.runtime.wiring import AgentServices


@dataclass(frozen=True, slots=True)
class LocalMcpCaller:
    """Whoever starts the process may do everything."""

    newton: AgentServices

    def has_scope(self, scope: TokenScope) -> bool:
        return True


async def serve_mcp(*, agent: AgentOption = None) -> None:
    """Speak MCP over standard input and output; a program such as an editor starts it.

    Example: newton mcp --agent work
    """
    configure("plain")  # standard output is the client's alone
    async with open_newton(load_settings(agent), long_running=True) as newton:
        await import_module("newton.runtime.mcp.server").serve_stdio(LocalMcpCaller(newton))
