"""Statements of a request go to one shard, and what runs with the rights of the owner runs where the agent is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest

from newton.content.package_data import data_folder
from newton.db.backup import create_backup, restore
from newton.db.distribution import plan_distribution, read_cluster_state
from newton.db.migrations import SchemaMigration, migrate, read_migrations
from newton.db.pool import Database
from newton.db.queries import SqlQuery
from newton.errors import ConflictError, DatabaseError
from newton.settings import load
from tests.citus.conftest import ClusterWorld
from tests.cluster import Servers, connection, list_nodes, on
from tests.db.test_queries import ACROSS, AGENTLESS, MODELS, QUERIES
from tests.db.world import live
from tests.support import NOON

# Statements of the queue of all agents, of names, and of what has no agent.
OTHERS = (*ACROSS, *AGENTLESS, *MODELS, "bench/", "runtime/transfer/export_file.sql:export_rows")

EMPTY_ARRAY = "'{}'"
VALUES = {
    **dict.fromkeys(("uuid",), "'00000000-0000-7000-8000-000000000000'"),
    **dict.fromkeys(("text", "varchar"), "'x'"),
    **dict.fromkeys(("bool", "int2", "int4", "int8", "float4", "float8", "numeric"), "'1'"),
    **dict.fromkeys(("timestamptz",), "'2026-01-01 00:00:00+00'"),
    **dict.fromkeys(("interval",), "'1 day'"),
    **dict.fromkeys(("jsonb", "json"), "'[]'"),
    **dict.fromkeys(("bytea", "halfvec", "vector", "regclass"), "null"),
}
# EXPLAIN cannot show these, which write in two steps; their tests run on the cluster.
WITHOUT_PLAN = {
    "dialogue/tasks.sql:transition_task",
    "runtime/jobs/queue.sql:delete_old_runs",
    "memory/vectors.sql:store_embeddings",
}


# Parameters that are never null, and with which as null Citus plans the statement in another way.
NEVER_NULL = {
    ("brain/queries.sql:list_decisions", "now"),
    *(("dialogue/sessions.sql:find_messages", name) for name in ("session_id", "refs")),
    ("dialogue/veils.sql:read", "session_id"),
    ("heart/entities/role_store.sql:add_role", "entity_id"),
}


async def explain(db: Database, query: SqlQuery, agent: UUID, null: str | None) -> list[dict[str, Any]]:
    """The plan of a statement for the agent, with null for one other parameter and a value for each of the rest."""
    sql = query.sql
    async with db.transaction(agent) as tx:
        prepared = await tx.prepare(sql)
        types = [parameter.name for parameter in prepared.get_parameters()]
        for number, kind in reversed([*enumerate(types, 1)]):
            value = f"'{agent}'" if number == 1 else VALUES.get(kind, EMPTY_ARRAY)
            sql = sql.replace(f"${number}", f"{'null' if query.args[number - 1] == null else value}::{kind}")
        return json.loads(await tx.fetchval(f"explain (format json) {sql}"))


def count_tasks(plan: Any) -> Iterator[int]:
    """The number of tasks of each distributed query of a plan."""
    if isinstance(plan, dict):
        if "Task Count" in plan:
            yield plan["Task Count"]
        for value in cast("dict[str, Any]", plan).values():
            yield from count_tasks(value)
    elif isinstance(plan, list):
        for value in cast("list[Any]", plan):
            yield from count_tasks(value)


async def test_statements_of_an_agent_go_to_one_shard(world: ClusterWorld) -> None:
    found: dict[tuple[str, str | None], list[int]] = {}
    refused: dict[tuple[str, str | None], str] = {}
    for name, query in QUERIES.items():
        if name.startswith(OTHERS) or name in WITHOUT_PLAN:
            continue
        for case in ((name, null) for null in (None, *query.args[1:]) if (name, null) not in NEVER_NULL):
            try:
                found[case] = list(count_tasks(await explain(world.db, query, world.ana, case[1])))
            except asyncpg.PostgresSyntaxError:
                continue  # CALL has no plan
            except (asyncpg.FeatureNotSupportedError, asyncpg.InternalServerError) as error:
                refused[case] = str(error)
    assert refused == {}
    assert {case: tasks for case, tasks in found.items() if any(number > 1 for number in tasks)} == {}
    assert sum(tasks != [] for (_, null), tasks in found.items() if null is None) > 300


async def test_what_another_daemon_writes_is_seen(world: ClusterWorld) -> None:
    """S001-32: two programs on one cluster, one of them connected to a worker, tell each other's writes."""
    other = await Database.open(world.workers[0], size=1)
    before = await world.db.current_snapshot(world.ana)
    assert await other.current_snapshot(world.ana) == before
    async with other.transaction(world.ana) as tx:
        await tx.execute("update memory.memories set uses = uses + 1 where agent_id = $1", world.ana)
    assert await world.db.current_snapshot(world.ana) != before
    await other.close()


async def test_a_later_migration_distributes_its_tables_and_functions(clone: str) -> None:
    added = """
    create table memory.later (
        agent_id uuid not null, memory_id uuid not null, primary key (agent_id, memory_id),
        foreign key (agent_id, memory_id) references memory.memories (agent_id, memory_id)
    );
    call runtime.isolate('memory.later');
    grant select on memory.later to newton_app;
    create view memory.later_ids with (security_invoker = true) as select agent_id, memory_id from memory.later;
    grant select on memory.later_ids to newton_app;
    create function memory.drop_later(target_agent uuid) returns void language sql security definer
    as $$ delete from memory.later where agent_id = target_agent $$;
    alter table memory.memories add column later_note text;
    alter table memory.memories add constraint later_note_check check (later_note <> '')
    """
    wanted = [*read_migrations(data_folder("schema")), SchemaMigration("9000_later.sql", added)]
    async with connection(clone) as owner:
        assert await migrate(owner, wanted) == ["9000_later.sql"]
    db = await Database.open(clone, size=1)
    ana = await live(db, "ana")
    async with db.transaction(ana) as tx:
        state = await read_cluster_state(tx)
        assert state is not None
        assert state.problems == () and state.is_distributed
        assert await tx.fetchval("select count(*) from memory.later_ids") == 0
        await tx.execute("select memory.drop_later($1)", ana)
    await db.close()


async def test_a_backup_is_restored_on_the_cluster(world: ClusterWorld, server: str, tmp_path: Path) -> None:
    """The rows of a restored dump are distributed, and nothing of them stays on the coordinator."""
    made = await create_backup(load({"database_url": world.dsn}, env={}), tmp_path / "copy", now=NOON)
    with pytest.raises(ConflictError, match="distributed database"):
        await restore(
            load({"database_url": world.dsn}, env={}), tmp_path / "copy", schema=data_folder("schema"), replace=True
        )
    name = "newton_restored"
    cluster = Servers(await list_nodes(server))
    await cluster.drop(name)
    await cluster.make_empty(name)
    try:
        settings = load({"database_url": on(server, name)}, env={})
        done = await restore(settings, tmp_path / "copy", schema=data_folder("schema"), replace=False, keep_tokens=True)
        assert done.rows == made.rows
        db = await Database.open(on(server, name), size=1)
        async with db.transaction(world.ana) as tx:
            state = await read_cluster_state(tx)
            assert state is not None and state.is_distributed and state.problems == ()
            assert await tx.fetchval("select count(*) from memory.memories") > 0
        async with connection(on(server, name)) as owner:
            assert await owner.fetchval("select pg_relation_size('memory.memories')") == 0
        await db.close()
    finally:
        await cluster.drop(name)


async def test_a_worker_refuses_to_be_the_coordinator(world: ClusterWorld) -> None:
    async with connection(world.workers[0]) as owner:
        with pytest.raises(DatabaseError, match="worker of the cluster"):
            await plan_distribution(owner)
