"""The nodes of a Citus cluster, and the places of agents on them."""

from typing import NamedTuple
from uuid import UUID

import asyncpg

from newton.db.pool import Tx
from newton.errors import DatabaseError, InputError, NotFoundError

FIRST_TABLE = "runtime.agents"
LIST_NODES_SQL = """
select nodename as host, nodeport as port, groupid = 0 as is_coordinator, shouldhaveshards as has_shards,
    isactive and hasmetadata and metadatasynced as is_active
from pg_dist_node
where noderole = 'primary'
order by groupid, nodeid
"""
FIND_PLACE_SQL = """
select s.shardid as shard, s.nodename as host, s.nodeport as port
from citus_shards as s
where s.shardid = get_shard_id_for_distribution_column('runtime.agents', $1::uuid)
"""
COUNT_NEIGHBOURS_SQL = """
select count(*)
from runtime.agents
where get_shard_id_for_distribution_column('runtime.agents', agent_id) = $1 and agent_id <> $2
"""
AGENT_EXISTS_SQL = "select exists (select from runtime.agents where agent_id = $1)"
MOVE_SQL = "select citus_move_shard_placement($1, $2, $3, $4, $5, shard_transfer_mode := 'auto')"
ISOLATE_SQL = "select isolate_tenant_to_new_shard('runtime.agents', $1::uuid, 'CASCADE', shard_transfer_mode := 'auto')"
ON_NODES_SQL = """
select n.nodename || ':' || n.nodeport as node, r.success, r.result
from run_command_on_all_nodes($1) as r
join pg_dist_node as n on n.nodeid = r.nodeid
"""
# A node other than the coordinator refuses such a command unless it concerns that node only.
ON_EACH_NODE_SQL = """
do $$
begin
    set local citus.enable_ddl_propagation = off;
    {statement};
exception
    when duplicate_object or unique_violation then null;
end
$$
"""


class ClusterNode(NamedTuple):
    """A node (server) of a Citus cluster. Only an active node with shards holds rows of agents."""

    host: str
    port: int
    is_coordinator: bool
    has_shards: bool
    is_active: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class AgentPlace(NamedTuple):
    """The shard (part of the tables) and the node with an agent's rows, and the number of other agents in the shard."""

    shard: int
    node: str
    neighbours: int


async def list_nodes(conn: Tx) -> tuple[ClusterNode, ...]:
    """Return the nodes of the cluster, the coordinator first."""
    return tuple(ClusterNode(**row) for row in await conn.fetch(LIST_NODES_SQL))


async def find_place(conn: Tx, agent: UUID) -> AgentPlace:
    """Return where the rows of an agent are. Raises NotFoundError for an unknown agent."""
    if not await conn.fetchval(AGENT_EXISTS_SQL, agent):
        raise NotFoundError("The database has no such agent.", hint="`newton agents list` lists the agents.")
    row = await conn.fetchrow(FIND_PLACE_SQL, agent)
    assert row is not None
    neighbours = await conn.fetchval(COUNT_NEIGHBOURS_SQL, row["shard"], agent)
    return AgentPlace(row["shard"], f"{row['host']}:{row['port']}", neighbours)


async def move_agent(conn: Tx, agent: UUID, node: str) -> AgentPlace:
    """Move the shard with an agent, and the other agents in it, to a node; return the new place.

    The agents can be used meanwhile; writes wait for a moment at the end. Raises InputError for an unknown node, and
    NotFoundError for an unknown agent.
    """
    workers = [one for one in await list_nodes(conn) if one.has_shards]
    target = next((one for one in workers if str(one) == node), None)
    if target is None:
        raise InputError(f"{node} is no node that holds agents.", hint=f"The nodes are {', '.join(map(str, workers))}.")
    place = await find_place(conn, agent)
    if place.node == node:
        return place
    host, _, port = place.node.rpartition(":")
    await _transfer(conn, MOVE_SQL, place.shard, host, int(port), target.host, target.port)
    return await find_place(conn, agent)


async def isolate_agent(conn: Tx, agent: UUID) -> AgentPlace:
    """Give an agent a shard of its own, on the node where it is; return its place.

    It can then be moved without other agents. Raises NotFoundError for an unknown agent.
    """
    if (await find_place(conn, agent)).neighbours:
        await _transfer(conn, ISOLATE_SQL, str(agent))
    return await find_place(conn, agent)


async def _transfer(conn: Tx, sql: str, *arguments: object) -> None:
    try:
        await conn.execute(sql, *arguments, timeout=None)
    except asyncpg.PostgresError as error:
        raise DatabaseError(
            f"The cluster refused: {error}.",
            hint="Nothing changed. To move rows while they are written, each node needs wal_level = logical.",
        ) from error


async def change_nodes(conn: Tx, statement: str) -> None:
    """Run a statement that changes the catalog on every node of a cluster. Raises DatabaseError if a node fails."""
    await run_on_nodes(conn, ON_EACH_NODE_SQL.format(statement=statement))


async def run_on_nodes(conn: Tx, sql: str) -> dict[str, str]:
    """Run a statement on every node of a cluster; return the result by node. Raises DatabaseError if a node fails."""
    results: dict[str, str] = {}
    for row in await conn.fetch(ON_NODES_SQL, sql):
        if not row["success"]:
            raise DatabaseError(
                f"The node {row['node']} failed: {row['result']}.",
                hint="Check that it runs and that the nodes can connect to each other, then run the command again.",
            )
        results[row["node"]] = row["result"]
    return results
