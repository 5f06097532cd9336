"""Access to an agent for a command, in the command's own process or in the daemon that runs the command."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from newton.runtime.cli.command_context import current_context
from newton.runtime.cli.formatting import print_new_project
from newton.runtime.cli.printing import print_notice
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices


@asynccontextmanager
async def open_own_agent(
    settings: Settings,
    *,
    skip_procedure_sync: bool = False,
    on_new_agent: Callable[[str], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> "AsyncGenerator[AgentServices]":
    """Open the database and the models in this process, and yield the services of the agent, or of its project.

    The arguments are those of `open_newton`. An unknown project is created if `on_new_agent` is given. The modules for
    it load slowly, so that a command which the daemon serves does not import them.
    """
    from newton.runtime.agent_registry import AgentRegistry  # noqa: PLC0415 (slow)
    from newton.runtime.bootstrap import open_newton  # noqa: PLC0415 (slow)

    async with open_newton(
        settings, skip_procedure_sync=skip_procedure_sync, on_new_agent=on_new_agent, on_notice=on_notice
    ) as newton:
        on_new = partial(print_new_project, agent=settings.agent) if on_new_agent else None
        yield await AgentRegistry(newton).enter_project(newton, settings.project, on_new=on_new)


@asynccontextmanager
async def open_agent(
    settings: Settings, *, skip_procedure_sync: bool = False, on_new_agent: Callable[[str], None] | None = None
) -> "AsyncGenerator[AgentServices]":
    """Yield the services of the agent that `settings` name, from the daemon that runs this command or in this process.

    The arguments are those of `open_newton`. A daemon ignores `skip_procedure_sync`: its agents are open already.
    """
    host = current_context().host
    if host is None:
        opened = open_own_agent(
            settings, skip_procedure_sync=skip_procedure_sync, on_new_agent=on_new_agent, on_notice=print_notice
        )
    else:
        opened = host.open_agent(settings, on_new_agent=on_new_agent)
    async with opened as newton:
        yield newton
