"""`newton agents`: the agents of a database."""

from typing import Annotated

from cyclopts import Parameter

from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs.claims import list_agent_queues


async def list_agents(*, json: JsonOption = False) -> None:
    """List the agents of this database with their queued and dead job runs.

    Example: newton agents list --json
    """
    async with open_agent(load_settings()) as newton:
        agents = await list_agent_queues(newton.scope.db)
    for one in () if json else agents:
        dead = f" · {formatting.pluralize(one.dead, 'dead run')}" if one.dead else ""
        owner = f" · memory of the user {one.user} of {one.parent}" if one.user else ""
        runs = formatting.pluralize(one.live, "queued run")
        model = f" · model {one.model}" if one.model else ""
        say(f"{one.name}  since {one.created_at:%Y-%m-%d}{owner}{model} · {runs}{dead}")
    if json:
        runs = [{"queued_runs": one.live, "dead_runs": one.dead} for one in agents]
        names = [
            {
                "name": one.name,
                "created_at": one.created_at.isoformat(),
                "parent": one.parent,
                "user": one.user,
                "model": one.model,
            }
            for one in agents
        ]
        formatting.print_json([name | counts for name, counts in zip(names, runs, strict=True)])


async def create_agent(
    name: Annotated[str, Parameter(help="Name of the agent: `--agent NAME` in commands, X-Newton-Agent in HTTP.")],
    *,
    json: JsonOption = False,
) -> None:
    """Create an agent for `--agent NAME` and API clients.

    Example: newton agents create work
    """
    created: list[str] = []
    async with open_agent(load_settings(name), on_new_agent=created.append) as newton:
        agent_id = newton.scope.agent_id
    if json:
        formatting.print_json({"name": name, "agent_id": str(agent_id), "is_new": bool(created)})
    elif not created:
        say(f"The agent {name} exists already; nothing changed.")
    else:
        say(f"Created the agent {name}. `newton tokens create NAME --agent {name}` creates a token for it.")


async def set_agent_model(
    name: Annotated[str, Parameter(help="Name of the agent.")],
    model: Annotated[
        str | None,
        Parameter(help="Name of an upstream, UPSTREAM/MODEL or a model of the server; omit it for the configured one."),
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Set the default model of an agent. A running daemon uses it from its next request on.

    Example: newton agents set-model work fast
    """
    async with open_agent(load_settings()) as newton:
        registry = AgentRegistry(newton)
        await registry.set_model(await registry.get(name), model)
    if json:
        formatting.print_json({"name": name, "model": model})
    elif model:
        say(f"The agent {name} uses the model {model}.")
    else:
        say(f"The agent {name} uses the configured model.")
