"""Row level security on the nodes that hold the rows, also for sessions that were opened there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database, Tx, begin
from newton.db.roles import read_roles
from tests.citus.conftest import ClusterWorld
from tests.cluster import connection, on, with_roles

SHARDS = """
select c.oid::regclass::text as shard, n.nspname || '.' || regexp_replace(c.relname, '_[0-9]{6,}$', '') as name,
    c.relrowsecurity and c.relforcerowsecurity as forced
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'r' and c.relname ~ '_[0-9]{6,}$'
    and n.nspname in ('memory', 'heart', 'brain', 'dialogue', 'cognition', 'runtime')
"""
WRITABLE = """
select string_agg(quote_ident(attname), ', ') from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
"""


@asynccontextmanager
async def scoped(dsn: str, agent: UUID) -> AsyncGenerator[Tx]:
    async with connection(dsn) as session:
        await begin(session, agent)
        yield session
        await session.execute("rollback")


async def list_shards(node: str) -> dict[str, str]:
    """The shards of agents on a node, each with the name of its table."""
    async with connection(node) as owner:
        rows = [row for row in await owner.fetch(SHARDS) if row["name"] != "memory.models"]
    assert all(row["forced"] for row in rows)
    return {row["shard"]: row["name"] for row in rows}


async def test_a_session_on_a_worker_sees_one_agent_in_every_table(world: ClusterWorld) -> None:
    for node in world.workers:
        for agent, other in ((world.ana, world.ben), (world.ben, world.ana)):
            async with scoped(node, agent) as session:
                for name in world.names:
                    assert await session.fetchval(f"select count(*) from {name}") > 0, name
                    assert await session.fetchval(f"select count(*) from {name} where agent_id = $1", other) == 0, name


async def test_a_session_on_a_worker_sees_one_agent_in_every_shard(world: ClusterWorld) -> None:
    seen: set[str] = set()
    for node in world.workers:
        shards = await list_shards(node)
        async with scoped(node, world.ana) as session:
            for shard, name in shards.items():
                agents = {row["agent_id"] for row in await session.fetch(f"select distinct agent_id from {shard}")}
                assert agents <= {world.ana}, shard
                seen |= {name} if agents else set()
    assert seen == set(world.names)


async def test_without_a_scope_a_worker_shows_nothing(world: ClusterWorld) -> None:
    for node in world.workers:
        shards = await list_shards(node)
        async with connection(world.dsn) as owner:
            app = (await read_roles(owner)).app
        async with connection(on(node, node.rpartition("/")[2], user=app)) as session:
            for name in (*world.names, *shards):
                assert await session.fetchval(f"select count(*) from {name}") == 0, name


@pytest.mark.parametrize("form", ["values", "select"])
async def test_no_row_is_written_for_another_agent_from_any_node(world: ClusterWorld, form: str) -> None:
    """Every statement of Newton has one of these forms; tests/unit/test_distributed_sql.py refuses the one without."""
    for node in world.nodes:
        async with connection(node) as owner:
            columns = {name: await owner.fetchval(WRITABLE, name) for name in world.names}
        async with connection(world.dsn) as owner:
            rows = {
                name: await owner.fetchval(
                    f"select to_json(t)::text from {name} as t where agent_id = $1 limit 1", world.ben
                )
                for name in world.names
            }
        db = await Database.open(node, size=1)
        for name, row in rows.items():
            source = f"json_populate_record(null::{name}, $1)"
            sql = f"insert into {name} ({columns[name]}) select {columns[name]} from {source} returning agent_id"
            if form == "values":
                fields = ", ".join(f"(select {column} from {source})" for column in columns[name].split(", "))
                sql = f"insert into {name} ({columns[name]}) values ({fields}) returning agent_id"
            with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError)):
                async with db.transaction(world.ana) as tx:
                    await tx.execute(sql, row)
        await db.close()


async def test_the_scope_of_one_transaction_does_not_stay_on_a_worker(world: ClusterWorld) -> None:
    """The connections between the nodes are kept for the next transaction, whoever it belongs to."""
    single = await Database.open(world.dsn, size=1)
    for agent, other in ((world.ana, world.ben), (world.ben, world.ana)):
        async with single.transaction(agent) as tx:
            assert await tx.fetchval("select count(*) from memory.memories where agent_id = $1", other) == 0
            assert await tx.fetchval("select count(*) from memory.memories where agent_id = $1", agent) > 0
        async with single.single_statement() as raw:
            await raw.execute(await with_roles(raw, "set role newton_app"))
            assert await raw.fetchval("select count(*) from memory.memories where agent_id = $1", agent) == 0
            await raw.execute("reset role")
    await single.close()


async def test_the_application_deletes_no_memory_on_a_worker(world: ClusterWorld) -> None:
    for node in world.workers:
        for shard, name in (await list_shards(node)).items():
            if name in {"memory.memories", "dialogue.messages", "brain.decision_records"}:
                async with scoped(node, world.ana) as session:
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await session.execute(f"delete from {shard}")


async def test_without_the_setting_nothing_is_seen(world: ClusterWorld) -> None:
    """The bug, planted: a scope that does not reach the nodes shows nothing, and never everything."""
    async with connection(world.dsn) as session:
        await session.execute("set citus.propagate_set_commands = 'none'")
        await begin(session, world.ana)
        assert await session.fetchval("select count(*) from memory.memories") == 0
