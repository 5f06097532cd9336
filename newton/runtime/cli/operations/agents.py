"""`newton agents`: whose minds there are."""

from typing import Annotated

from cyclopts import Parameter

from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs.claims import list_agent_queues


async def list_agents(*, json: JsonOption = False) -> None:
    """List the agents of this database: since when there are, and what waits for them or was given up.

    Example: newton agents list --json
    """
    async with open_newton(load_settings()) as newton:
        known = await list_agent_queues(newton.scope.db)
    if json:
        formatting.print_json(
            [
                {"name": one.name, "created_at": one.created_at.isoformat(), "live": one.live, "dead": one.dead}
                for one in known
            ]
        )
        return
    for one in known:
        given_up = f" · {formatting.pluralize(one.dead, 'run')} given up" if one.dead else ""
        say(f"{one.name}  since {one.created_at:%Y-%m-%d} · {formatting.pluralize(one.live, 'job')} waiting{given_up}")


async def create_agent(
    name: Annotated[str, Parameter(help="What it is called: `--agent NAME` in commands, X-Newton-Agent over HTTP.")],
    *,
    json: JsonOption = False,
) -> None:
    """Begin an agent, whom programs that speak to `newton serve` may name from then on.

    Example: newton agents create work
    """
    async with open_newton(load_settings(name)) as newton:
        said = {"name": newton.settings.agent, "agent_id": str(newton.scope.agent_id)}
    if json:
        formatting.print_json(said)
    else:
        say(f"There is an agent {said['name']}. `newton tokens create TOKEN --agent {said['name']}` lets others in.")
