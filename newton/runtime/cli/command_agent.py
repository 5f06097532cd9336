"""Access to an agent for a command, in the command's own process or in the daemon that runs the command."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from newton.runtime.cli.command_context import current_context
from newton.runtime.cli.printing import print_notice
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices


def open_own_agent(
    settings: Settings,
    *,
    skip_procedure_sync: bool = False,
    on_new_agent: Callable[[str], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> "AbstractAsyncContextManager[AgentServices]":
    """Open the database and the models in this process; the arguments are those of `open_newton`.

    The modules for it load slowly, so that a command which the daemon serves does not import them.
    """
    from newton.runtime.bootstrap import open_newton  # noqa: PLC0415 (slow)

    return open_newton(
        settings, skip_procedure_sync=skip_procedure_sync, on_new_agent=on_new_agent, on_notice=on_notice
    )


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
