"""Commands `newton agents`: list, show, create and delete the agents of a database, and set their models."""

import shlex
from typing import Annotated

from cyclopts import Parameter

from newton.agent.inventory.agent_overview import AgentInventory, AgentOverview, StateCount
from newton.operations.text_format import pluralize
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.options import JsonOption, ask_to_confirm, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.jobs.claims import list_agent_queues

NameArgument = Annotated[str, Parameter(help="Name of the agent.")]


async def list_agents(*, json: JsonOption = False) -> None:
    """List the agents of this database with their job runs: queued ones, and dead ones, which failed too often.

    Example: newton agents list --json
    """
    async with open_agent(load_settings()) as newton:
        agents = await list_agent_queues(newton.scope.db)
    for one in () if json else agents:
        dead = f" · {pluralize(one.dead, 'dead run')}" if one.dead else ""
        owner = f" · memory of the user {one.user} of {one.parent}" if one.user else ""
        owner = f" · project {one.project} of {one.parent}" if one.project else owner
        runs = pluralize(one.live, "queued run")
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
                "project": one.project,
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
    """Create an agent. Commands use it with `--agent NAME`, and API clients with a token for it.

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
        say(
            f"Created the agent {name}. `newton tokens create NAME --agent {shlex.quote(name)}` creates a token for it."
        )


async def set_agent_model(
    name: Annotated[str, Parameter(help="Name of the agent.")],
    model: Annotated[
        str | None,
        Parameter(
            help="Name of a configured server (upstream), UPSTREAM/MODEL or a model; default: the configured model."
        ),
    ] = None,
    *,
    json: JsonOption = False,
) -> None:
    """Set the default chat model of an agent. A running daemon uses it from its next request on.

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


async def show_agent(name: NameArgument, *, json: JsonOption = False) -> None:
    """Show how much an agent has stored: its memories by kind and state, sessions, last activity and size.

    Example: newton agents show work
    """
    async with open_agent(load_settings()) as newton:
        overview = await AgentInventory(scope=newton.scope).describe(name)
    if json:
        formatting.print_json(_overview_to_json(overview))
    else:
        say(_format_overview(overview))


async def delete_agent(
    name: NameArgument,
    *,
    confirm: Annotated[str | None, Parameter(help="Code that the preview printed.")] = None,
    json: JsonOption = False,
) -> None:
    """Permanently delete an agent with all its data, its tokens and the memories of its users and projects.

    In a terminal, the command shows what it would delete and asks. Otherwise the first call prints a code, and nothing
    is deleted until the command is repeated with --confirm CODE. Existing backups and exports still contain the data.

    Example: newton agents delete work
    """
    async with open_agent(load_settings()) as newton:
        inventory = AgentInventory(scope=newton.scope)
        if confirm is None:
            overview = await inventory.describe(name)
            if json or not current_terminal().asks():
                _print_preview(overview, json=json)
                return
            say(_format_overview(overview))
            ask_to_confirm(f"Permanently delete the agent {name}?")
            confirm = overview.token
        overview = await inventory.delete(name, token=confirm)
        for agent_id in overview.agent_ids:
            newton.chain_heads.delete(agent_id)
    if json:
        formatting.print_json({**_overview_to_json(overview), "is_deleted": True})
    else:
        say(f"Deleted the agent {name} with {pluralize(overview.memories, 'memory', 'memories')}.")


def _print_preview(overview: AgentOverview, *, json: bool) -> None:
    if json:
        formatting.print_json({**_overview_to_json(overview), "is_deleted": False, "confirm": overview.token})
        return
    command = shlex.join(["newton", "agents", "delete", overview.name, "--confirm", overview.token])
    say(f"{_format_overview(overview)}\nNothing is deleted yet. `{command}` deletes the agent.")


def _format_overview(overview: AgentOverview) -> str:
    last = f"{overview.last_activity_at:%Y-%m-%d %H:%M}" if overview.last_activity_at else "never"
    sessions = pluralize(overview.sessions, "session")
    own = f" · {pluralize(overview.users, 'user')} with a memory of their own" if overview.users else ""
    own += f" · {pluralize(overview.projects, 'project')}" if overview.projects else ""
    lines = [
        f"{overview.name}  since {overview.created_at:%Y-%m-%d} · last active {last}",
        f"{pluralize(overview.memories, 'memory', 'memories')} · {sessions} · "
        f"{pluralize(overview.messages, 'message')} · {_format_size(overview.size_bytes)}"
        f"{own}",
    ]
    return "\n".join([*lines, *map(_format_count, overview.states)])


def _format_count(one: StateCount) -> str:
    return f"  {one.memories:>8,}  {one.kind:<10} {one.state}{', quarantined' if one.quarantined else ''}"


def _format_size(size: int) -> str:
    """Format a number of bytes in kB or MB.

    >>> _format_size(900), _format_size(2_500_000)
    ('1 kB', '2.5 MB')
    """
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{max(size / 1e3, 1):.0f} kB"


def _overview_to_json(overview: AgentOverview) -> dict[str, object]:
    last = overview.last_activity_at
    return {
        "agent_id": str(overview.agent_id),
        "name": overview.name,
        "created_at": overview.created_at.isoformat(),
        "last_activity_at": last and last.isoformat(),
        "memories": overview.memories,
        "counts": [one._asdict() for one in overview.states],
        "sessions": overview.sessions,
        "messages": overview.messages,
        "users": overview.users,
        "projects": overview.projects,
        "size_bytes": overview.size_bytes,
    }
