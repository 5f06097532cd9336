"""What an agent has in every table is merged, read by functions of the database, moved and erased as on one server."""

from collections.abc import Sequence
from uuid import UUID

from newton.agent.services.entities import EntityService
from newton.agent.services.erasure import ErasureService
from newton.db.cluster import find_place, isolate_agent, list_nodes, move_agent
from newton.db.pool import Tx
from newton.heart.entities import entity_changes
from newton.heart.entities.entity_changes import RelationDeclaration
from newton.memory import agents
from tests.citus.conftest import ClusterWorld
from tests.cluster import connection, list_distributed
from tests.db.world import live
from tests.support import NOON, agent_scope, teller

CONTENT = "select md5(string_agg(to_json(t)::text, '' order by to_json(t)::text)) from {table} as t where agent_id = $1"
# Functions that statements call for each row; one refused by Citus fails only when there is a row.
CALLS = {
    "the successors of facts": """
        select count(*) from heart.facts as f
        cross join lateral heart.list_successors($1, f.memory_id, null) as s where f.agent_id = $1""",
    "the current relations": """
        select count(*) from heart.relations as r
        where r.agent_id = $1 and heart.is_relation_current($1, r.memory_id, 'infinity')""",
    "facts of one session": """
        select count(*) from memory.memories as m
        where m.agent_id = $1 and not memory.is_stated_only_in($1, m.memory_id, m.thread_id, 0, '{}')""",
}


async def read_all(conn: Tx, names: Sequence[str], agent: UUID) -> dict[str, str | None]:
    """A hash of the rows of the agent in each table."""
    return {name: await conn.fetchval(CONTENT.format(table=name), agent) for name in names}


async def test_every_table_of_an_agent_is_distributed(world: ClusterWorld) -> None:
    async with connection(world.dsn) as owner:
        assert await list_distributed(owner) == {*world.names, "memory.models"}


async def test_functions_of_a_query_read_the_tables_of_the_agent(world: ClusterWorld) -> None:
    async with world.db.transaction(world.ana) as tx:
        found = {name: await tx.fetchval(sql, world.ana) for name, sql in CALLS.items()}
    assert all(found.values()), found


async def test_entities_are_merged_on_the_node_of_their_agent(world: ClusterWorld) -> None:
    """The merge deletes with the rights of the owner, in the transaction in which the application wrote before."""
    async with connection(world.dsn) as owner:
        others = await read_all(owner, world.names, world.ben)
    agent = await agents.get_or_create_agent(world.db, "merger", now=NOON)
    service = EntityService(scope=agent_scope(agent_id=agent, db=world.db))
    works = [(name, "works at", "Acme") for name in ("Bob Smith", "Robert Smith")]
    async with world.db.transaction(agent) as tx:
        for source, kind, target in (*works, ("Acme", "employs", "Bob Smith")):
            stated = RelationDeclaration(ref=f"{source} {kind}", source=source, type=kind, target=target)
            await entity_changes.declare_relations(tx, [stated], ctx=teller(agent))
    plan = await service.plan_merge("Bob Smith", "Robert Smith")
    assert ([one.type for one in plan.known], [one.type for one in plan.moved]) == (["works at"], ["employs"])
    await service.merge("Bob Smith", "Robert Smith", token=plan.token)
    found = await service.get("Bob Smith", limit=1)
    assert found.name == "Robert Smith" and list(found.aliases) == ["Bob Smith"]
    assert {(one.source, one.type, one.target) for one in found.relations} == {
        ("Robert Smith", "works at", "Acme"),
        ("Acme", "employs", "Robert Smith"),
    }
    async with connection(world.dsn) as owner:
        assert await owner.fetchval("select count(*) from memory.forgotten where agent_id = $1", agent) == 2
        assert await read_all(owner, world.names, world.ben) == others


async def test_an_agent_with_rows_in_every_table_moves_and_is_erased(world: ClusterWorld) -> None:
    agent = await live(world.db, "traveller")
    async with connection(world.dsn) as owner:
        before = await read_all(owner, world.names, agent)
        assert all(before.values())
        place = await isolate_agent(owner, agent)
        other = next(node for node in await list_nodes(owner) if node.has_shards and str(node) != place.node)
        await move_agent(owner, agent, str(other))
        assert (await find_place(owner, agent)).node == str(other)
        assert await read_all(owner, world.names, agent) == before
        others = await read_all(owner, world.names, world.ben)
    await ErasureService(scope=agent_scope(agent_id=agent, db=world.db)).erase_agent()
    async with connection(world.dsn) as owner:
        left = {name for name, content in (await read_all(owner, world.names, agent)).items() if content}
        assert left <= {"runtime.agents", "runtime.tokens", "runtime.events"}
        assert await read_all(owner, world.names, world.ben) == others
