"""Distribution of the schema over the nodes of a Citus cluster.

Each table with an `agent_id` is distributed by it, so that all rows of an agent are on one node. Each function with
the rights of its owner runs on the node of the agent that is its first argument.
"""

from dataclasses import dataclass
from typing import NamedTuple

from newton.db.cluster import FIRST_TABLE, ClusterNode, change_nodes, list_nodes, run_on_nodes
from newton.db.pool import Tx
from newton.db.roles import CREATE_ROLE_SQL, read_roles
from newton.errors import DatabaseError

DEFAULT_SHARDS = 32
# Settings of the database on each node. In order: SET LOCAL also applies on other nodes, which the scope of an agent
# needs; the catalog is read without a slow filter that hides shards; a function in a query may read tables of the same
# agent; the planner settings that the transactions of an agent have.
NODE_SETTINGS = {
    "citus.propagate_set_commands": "local",
    "citus.show_shards_for_app_name_prefixes": "*",
    "citus.allow_nested_distributed_execution": "on",
    "random_page_cost": "1.1",
    "enable_mergejoin": "off",
}
# All tables with a foreign key to a reference table would otherwise be made ready for it one by one.
TRANSACTION_SETTINGS = {
    "citus.multi_shard_modify_mode": "sequential",
    "citus.enable_local_reference_table_foreign_keys": "off",
}
REFERENCE_TABLE = "memory.models"
IS_DISTRIBUTED_SQL = """
select exists (select from pg_extension where extname = 'citus') and to_regclass('runtime.agents') is not null
"""
HAS_SCHEMA_SQL = "select to_regprocedure('runtime.agent_tables()') is not null"
COUNT_SHARDS_SQL = "select count(*) from pg_dist_shard where logicalrelid = to_regclass('runtime.agents')"
LIST_DISTRIBUTED_SQL = "select logicalrelid::regclass::text as name from pg_dist_partition"
# The first table first, because the others are placed with it.
LIST_TABLES_SQL = """
select part::text as name
from runtime.agent_tables() with ordinality as t (part, place)
order by part <> 'runtime.agents'::regclass, place
"""
# The functions that run with the rights of their owner, and the one that sets the scope itself.
LIST_FUNCTIONS_SQL = """
select p.oid::regprocedure::text as name
from pg_proc as p
where
    p.pronamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and p.prokind = 'f'
    and p.proargnames[1] = 'target_agent'
    and (p.prosecdef or p.oid = 'runtime.authenticate_token(uuid,uuid,bytea,timestamptz)'::regprocedure)
    and not exists (
        select from pg_catalog.pg_dist_object as o
        where o.classid = 'pg_proc'::regclass and o.objid = p.oid and o.force_delegation
    )
order by 1
"""
# Functions that Citus does not copy by itself, because tables that were local then are part of their definition.
LIST_LOCAL_FUNCTIONS_SQL = """
select p.oid::regprocedure::text as name
from pg_proc as p
where
    p.pronamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and p.prokind in ('f', 'p')
    and not exists (
        select from pg_catalog.pg_dist_object as o where o.classid = 'pg_proc'::regclass and o.objid = p.oid
    )
order by 1
"""
GRANTS_ON_VIEWS_SQL = """
select format('grant select on %s to %s', c.oid::regclass, runtime.app_role()) as statement
from pg_class as c
where
    c.relkind = 'v'
    and c.relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and has_table_privilege(runtime.app_role(), c.oid, 'select')
"""
VECTOR_SQL = "select extversion from pg_extension where extname = 'vector'"


@dataclass(frozen=True, slots=True)
class DistributionPlan:
    """The effects of `distribute`: the tables and functions that are not distributed yet, and the number of shards."""

    nodes: tuple[ClusterNode, ...]
    tables: tuple[str, ...]
    functions: tuple[str, ...]
    shards: int

    @property
    def workers(self) -> list[ClusterNode]:
        """Return the nodes that hold rows of agents."""
        return [node for node in self.nodes if node.has_shards]


async def is_distributed(conn: Tx) -> bool:
    """Return whether the tables of agents are distributed over a cluster."""
    if not await conn.fetchval(IS_DISTRIBUTED_SQL):
        return False
    return FIRST_TABLE in await _list_distributed(conn)


async def require_coordinator(conn: Tx) -> None:
    """Raise DatabaseError if the server is a worker node of a cluster, where the schema cannot be changed."""
    if not await conn.fetchval("select exists (select from pg_extension where extname = 'citus')"):
        return
    if await conn.fetchval("select groupid <> 0 from pg_dist_local_group"):
        raise DatabaseError(
            "This server is a worker of the cluster.", hint="Set DATABASE_URL to the coordinator of the cluster."
        )


async def plan_distribution(conn: Tx, *, shards: int = DEFAULT_SHARDS) -> DistributionPlan:
    """Check that the database can be distributed, and return what is left to do. Nothing is changed.

    Raises DatabaseError, with a remedy as its hint, if it cannot be distributed.
    """
    await _check_extension(conn)
    await _check_user(conn)
    nodes = await list_nodes(conn)
    await _check_nodes(conn, nodes)
    return await _plan_rest(conn, nodes, shards)


async def _plan_rest(conn: Tx, nodes: tuple[ClusterNode, ...], shards: int) -> DistributionPlan:
    if not await conn.fetchval(HAS_SCHEMA_SQL):
        return DistributionPlan(nodes, (), (), shards)  # the migrations come first
    distributed = await _list_distributed(conn)
    tables = [row["name"] for row in await conn.fetch(LIST_TABLES_SQL)]
    return DistributionPlan(
        nodes,
        tuple(name for name in (REFERENCE_TABLE, *tables) if name not in distributed),
        tuple(row["name"] for row in await conn.fetch(LIST_FUNCTIONS_SQL)),
        shards,
    )


async def distribute(conn: Tx, plan: DistributionPlan) -> None:
    """Distribute the tables and functions of the plan over the nodes in one transaction, and set what Newton needs.

    Rows that are in the tables move to the nodes. Connections that are open keep the former settings. Raises
    DatabaseError if a node or statement fails.
    """
    database = await conn.fetchval("select quote_ident(current_database())")
    for role in await read_roles(conn):
        await change_nodes(conn, CREATE_ROLE_SQL.format(role=role))
    for name, value in NODE_SETTINGS.items():
        await change_nodes(conn, f"alter database {database} set {name} = '{value}'")
    async with conn.transaction():
        await distribute_new(conn, plan)
    await _remove_local_copies(conn, plan.tables)
    await grant_views(conn)


async def set_transaction_settings(conn: Tx) -> None:
    """Make the open transaction use one connection to each node, so that it sees its own changes of the schema."""
    for name, value in TRANSACTION_SETTINGS.items():
        await conn.execute(f"set local {name} = '{value}'")


async def distribute_added(conn: Tx) -> None:
    """Distribute the tables and functions that migrations have just added to a distributed database."""
    await distribute_new(conn, await _plan_rest(conn, await list_nodes(conn), DEFAULT_SHARDS))


async def distribute_new(conn: Tx, plan: DistributionPlan) -> None:
    """Distribute the tables and functions of the plan in the open transaction."""
    await set_transaction_settings(conn)
    await conn.execute(f"set local citus.shard_count = {plan.shards}")
    for name in plan.tables:
        if name == REFERENCE_TABLE:
            await conn.execute("select create_reference_table($1::text::regclass)", name)
        elif name == FIRST_TABLE:
            await conn.execute("select create_distributed_table($1::text::regclass, 'agent_id')", name)
        else:
            sql = "select create_distributed_table($1::text::regclass, 'agent_id', colocate_with => $2)"
            await conn.execute(sql, name, FIRST_TABLE)
    for row in await conn.fetch(LIST_LOCAL_FUNCTIONS_SQL):
        await conn.execute("select create_distributed_function($1::text::regprocedure)", row["name"])
    for name in plan.functions:
        sql = (
            "select create_distributed_function($1::text::regprocedure, 'target_agent', colocate_with => $2,"
            " force_delegation => true)"
        )
        await conn.execute(sql, name, FIRST_TABLE)


async def grant_views(conn: Tx) -> None:
    """Repeat the grants on views on all nodes, because Citus does not copy them there."""
    for row in await conn.fetch(GRANTS_ON_VIEWS_SQL):
        await change_nodes(conn, row["statement"])


async def _remove_local_copies(conn: Tx, tables: tuple[str, ...]) -> None:
    """Remove the rows that the coordinator keeps, invisible, of tables that were filled before."""
    for name in tables:
        if name != REFERENCE_TABLE:
            await conn.execute("select truncate_local_data_after_distributing_table($1::text::regclass)", name)


async def _list_distributed(conn: Tx) -> set[str]:
    return {row["name"] for row in await conn.fetch(LIST_DISTRIBUTED_SQL)}


async def _check_extension(conn: Tx) -> None:
    if await conn.fetchval("select exists (select from pg_extension where extname = 'citus')"):
        return
    if await conn.fetchval("select exists (select from pg_available_extensions where name = 'citus')"):
        raise DatabaseError(
            "The database has no extension citus.",
            hint="As a superuser, run `create extension citus` in it on each node, and add the nodes with"
            " `citus_set_coordinator_host` and `citus_add_node`.",
        )
    raise DatabaseError(
        "The server has no Citus.",
        hint="Install Citus on each node, with `shared_preload_libraries = 'citus'`; see docs/citus.md.",
    )


async def _check_user(conn: Tx) -> None:
    if not await conn.fetchval("select rolsuper from pg_roles where rolname = current_user"):
        raise DatabaseError(
            "The database user is no superuser: row level security would hide rows that have to be moved.",
            hint="Set DATABASE_URL to the connection string of a superuser for this command.",
        )


async def _check_nodes(conn: Tx, nodes: tuple[ClusterNode, ...]) -> None:
    """Raise DatabaseError, with a remedy as its hint, if a node lacks what rows of agents need."""
    await require_coordinator(conn)
    if not any(node.is_coordinator for node in nodes):
        raise DatabaseError(
            "The coordinator is not registered in its cluster.",
            hint="Run `select citus_set_coordinator_host('HOST', PORT)` on it, with its name as the workers know it.",
        )
    if not any(node.has_shards and not node.is_coordinator for node in nodes):
        raise DatabaseError(
            "The cluster has no worker.", hint="Run `select citus_add_node('HOST', PORT)` on the coordinator."
        )
    for node in nodes:
        if node.is_coordinator and node.has_shards:
            raise DatabaseError(
                "The coordinator holds shards, where Citus does not check row level security for every statement.",
                hint=f"Run `select citus_set_node_property('{node.host}', {node.port}, 'shouldhaveshards', false)`.",
            )
        if not node.is_active and not node.is_coordinator:
            raise DatabaseError(
                f"The node {node} is not active.",
                hint=f"Run `select citus_activate_node('{node.host}', {node.port})`, or remove the node.",
            )
    await run_on_nodes(conn, VECTOR_SQL)


class ClusterState(NamedTuple):
    """The cluster, its nodes, and how much of the schema is distributed, as the application's role sees it.

    `problems` are what `newton db distribute` would change or refuse.
    """

    version: str
    nodes: tuple[ClusterNode, ...]
    is_distributed: bool
    tables: int
    shards: int
    problems: tuple[str, ...]


async def read_cluster_state(tx: Tx) -> ClusterState | None:
    """Return the state of the cluster; None on a server without Citus. Raises DatabaseError if it is a worker."""
    await require_coordinator(tx)
    version = await tx.fetchval("select extversion from pg_extension where extname = 'citus'")
    if version is None:
        return None
    nodes = await list_nodes(tx)
    plan = await _plan_rest(tx, nodes, DEFAULT_SHARDS)
    distributed = await _list_distributed(tx)
    problems = [f"the table {name} is on the coordinator only" for name in plan.tables]
    problems += [f"the function {name} runs on the coordinator" for name in plan.functions]
    for name, value in NODE_SETTINGS.items():
        if name.startswith("citus.") and await tx.fetchval("select current_setting($1)", name) != value:
            problems.append(f"the setting {name} is not {value}")
    problems += [f"the node {node} is not active" for node in nodes if not node.is_active and not node.is_coordinator]
    problems += ["the coordinator holds shards" for node in nodes if node.is_coordinator and node.has_shards]
    shards = await tx.fetchval(COUNT_SHARDS_SQL)
    return ClusterState(version, nodes, FIRST_TABLE in distributed, len(distributed), shards, tuple(problems))


def describe_plan(plan: DistributionPlan) -> list[str]:
    """Return what `distribute` would do as lines of text."""
    lines = [f"Nodes: {', '.join(map(str, plan.workers))} hold the rows of agents."]
    if plan.tables:
        lines.append(f"Distribute {len(plan.tables)} tables over {plan.shards} shards: {', '.join(plan.tables)}.")
    if plan.functions:
        lines.append(f"Run {len(plan.functions)} functions on the node of the agent: {', '.join(plan.functions)}.")
    lines.append("Set on each node: " + ", ".join(f"{name} = {value}" for name, value in NODE_SETTINGS.items()) + ".")
    return lines
