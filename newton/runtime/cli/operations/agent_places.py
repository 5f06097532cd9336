"""Commands `newton agents move` and `newton agents isolate`: the places of agents in a Citus cluster."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from cyclopts import Parameter

from newton.db import cluster
from newton.db.cluster import AgentPlace
from newton.db.connection import open_owner_connection
from newton.db.distribution import is_distributed
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.ids import derive_agent_id
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say

NameArgument = Annotated[str, Parameter(help="Name of the agent.")]


async def move_agent(
    name: NameArgument,
    node: Annotated[str, Parameter(help="The node, as HOST:PORT; `newton doctor` lists the nodes.")],
    *,
    json: JsonOption = False,
) -> None:
    """Move an agent to another node of a Citus cluster, with the agents that share its shard.

    The agents can be used meanwhile; writes wait for a moment at the end. `newton agents isolate` separates an agent
    from the others before. DATABASE_URL must be the connection string of a superuser on the coordinator.

    Example: newton agents move work 10.0.0.12:5432
    """
    async with _open_cluster() as connection:
        place = await cluster.move_agent(connection, derive_agent_id(name), node)
    _print_place(name, place, json=json)


async def isolate_agent(name: NameArgument, *, json: JsonOption = False) -> None:
    """Give an agent a shard of its own in a Citus cluster, so that it can be moved without other agents.

    The agent can be used meanwhile; writes wait for a moment at the end. DATABASE_URL must be the connection string of
    a superuser on the coordinator.

    Example: newton agents isolate work
    """
    async with _open_cluster() as connection:
        place = await cluster.isolate_agent(connection, derive_agent_id(name))
    _print_place(name, place, json=json)


@asynccontextmanager
async def _open_cluster() -> AsyncGenerator[Tx]:
    async with open_owner_connection(load_settings()) as connection:
        if not await is_distributed(connection):
            raise ConflictError(
                "The database is not distributed, so all agents are on one server.",
                hint="`newton db distribute` distributes it over the nodes of a Citus cluster.",
            )
        yield connection


def _print_place(name: str, place: AgentPlace, *, json: bool) -> None:
    if json:
        formatting.print_json({"name": name, **place._asdict()})
        return
    others = pluralize(place.neighbours, "other agent")
    say(f"{name} is on {place.node}, in shard {place.shard} with {others}.")
