"""`newton mcp`: the memory for a program that speaks MCP."""

from dataclasses import dataclass
from importlib import import_module

from newton.runtime.access.tokens import Scope
from newton.runtime.cli.options import Agent, settings
from newton.runtime.logs import configure
from newton.runtime.opening import opened
from newton.runtime.wiring import Newton


@dataclass(frozen=True, slots=True)
class Owner:
    """Whoever starts the process may do everything."""

    newton: Newton

    def may(self, scope: Scope) -> bool:
        return True


async def mcp(*, agent: Agent = None) -> None:
    """Speak MCP over standard input and output; a program such as an editor starts it.

    Example: newton mcp --agent work
    """
    configure("plain")  # standard output is the client's alone
    async with opened(settings(agent), for_long=True) as newton:
        await import_module("newton.runtime.mcp.server").speak(Owner(newton))
