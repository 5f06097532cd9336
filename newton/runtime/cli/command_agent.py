"""Access to an agent for a command, in the command's own process or in the daemon that runs the command."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.command_context import current_context
from newton.runtime.wiring import AgentServices
from newton.settings import Settings


@asynccontextmanager
async def open_agent(
    settings: Settings, *, skip_procedure_sync: bool = False, on_new_agent: Callable[[str], None] | None = None
) -> AsyncGenerator[AgentServices]:
    """Yield the services of the agent that `settings` name.

    The arguments are those of `open_newton`. A daemon ignores `skip_procedure_sync`: its agents are open already.
    """
    host = current_context().host
    if host is None:
        opened = open_newton(
            settings,
            skip_procedure_sync=skip_procedure_sync,
            on_new_agent=on_new_agent,
            on_notice=formatting.print_notice,
        )
    else:
        opened = host.open_agent(settings, on_new_agent=on_new_agent)
    async with opened as newton:
        yield newton
