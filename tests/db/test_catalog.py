"""What the catalog of a migrated database must say, read from the catalog and not from the files."""

from collections.abc import Sequence

import asyncpg
import pytest

from newton.db.pool import Tx
from newton.db.roles import read_roles
from tests.cluster import with_roles
from tests.db.catalog import AGENTLESS, faults, tables

OUT_OF_LINE = "vectors kept out of line"
STORAGE = pytest.mark.one_server("Citus refuses to change the storage of a column")
BAD = {
    "no row level security": (
        "create table memory.bad (agent_id uuid not null primary key)",
        "memory.bad: row level security is not forced",
    ),
    "no force": (
        "create table memory.bad (agent_id uuid not null primary key); call runtime.isolate('memory.bad');"
        " alter table memory.bad no force row level security",
        "memory.bad: row level security is not forced",
    ),
    "no policy": (
        "create table memory.bad (agent_id uuid not null primary key);"
        " alter table memory.bad enable row level security, force row level security",
        "memory.bad: no policy reads newton.agent_id",
    ),
    "a policy for everyone beside the real one": (
        "create table memory.bad (agent_id uuid not null primary key); call runtime.isolate('memory.bad');"
        " create policy open on memory.bad using (true)",
        "memory.bad: policy open lets others in",
    ),
    "a policy for the worker beside the real one": (
        "create table memory.bad (agent_id uuid not null primary key); call runtime.isolate('memory.bad');"
        " create policy worker on memory.bad to newton_worker using (true)",
        "memory.bad: policy worker lets others in",
    ),
    "something of a memory for the worker": (
        "grant select (micro) on memory.memories to newton_worker",
        "memory.memories: newton_worker has a right to it",
    ),
    "agent not first in the key": (
        "create table memory.bad (agent_id uuid not null, id uuid, primary key (id, agent_id));"
        " call runtime.isolate('memory.bad')",
        "memory.bad: bad_pkey does not begin with agent_id",
    ),
    "no key at all": (
        "create table memory.bad (agent_id uuid not null); call runtime.isolate('memory.bad')",
        "memory.bad: no primary key",
    ),
    "unique across agents": (
        "create table memory.bad (agent_id uuid not null primary key, name text unique);"
        " call runtime.isolate('memory.bad')",
        "memory.bad: bad_name_key does not begin with agent_id",
    ),
    "an index across agents": (
        "create table memory.bad (agent_id uuid not null primary key, name text);"
        " create index bad_idx on memory.bad (name); call runtime.isolate('memory.bad')",
        "memory.bad: bad_idx does not begin with agent_id",
    ),
    "a reference to another agent's row": (
        "create table memory.other (agent_id uuid not null primary key, id uuid unique);"
        " create table memory.bad (agent_id uuid not null primary key, id uuid references memory.other (id));"
        " call runtime.isolate('memory.bad')",
        "memory.bad: bad_id_fkey does not pair agent_id with agent_id",
    ),
    "agent may be missing": (
        "create table memory.bad (id uuid primary key, agent_id uuid)",
        "memory.bad: agent_id is not a required uuid",
    ),
    "agent of another type": (
        "create table memory.bad (agent_id text not null primary key)",
        "memory.bad: agent_id is not a required uuid",
    ),
    "no agent": ("create table heart.bad (id uuid primary key)", "heart.bad: has no agent_id"),
    "a time without a zone": (
        "create table memory.bad (agent_id uuid not null primary key, at timestamp)",
        "memory.bad.at: a timestamp without a zone",
    ),
    "a sequence": ("create table memory.bad (agent_id uuid, id bigserial)", "memory.bad_id_seq: a sequence"),
    "truncate for the application": (
        "grant truncate on memory.memories to newton_app",
        "memory.memories: newton_app may TRUNCATE",
    ),
    "messages that can be edited": (
        "grant update (content) on dialogue.messages to newton_app",
        "dialogue.messages: newton_app may UPDATE content",
    ),
    "trust that can be raised": (
        "grant update on memory.memories to newton_app",
        "memory.memories: newton_app may UPDATE trust",
    ),
    "a table of the application's own": (
        "create table memory.bad (agent_id uuid not null primary key);"
        " grant create on schema memory to newton_app; alter table memory.bad owner to newton_app",
        "memory.bad: owned by newton_app",
    ),
    OUT_OF_LINE: (
        "alter table memory.embeddings alter column embedding set storage extended",
        "memory.embeddings.embedding: storage is not plain",
    ),
}


async def owner(dsn: str) -> Tx:
    return await asyncpg.connect(dsn)


async def test_the_schema_has_no_fault_and_every_table_of_the_design_is_looked_at(shared: str) -> None:
    conn = await owner(shared)
    try:
        assert await faults(conn) == []
        known = await tables(conn)
    finally:
        await conn.close()
    assert known > AGENTLESS
    assert {"memory.memories", "heart.facts", "dialogue.messages", "cognition.bundles", "runtime.usage"} < known
    assert len(known) >= 15


@pytest.mark.parametrize("flaw", [pytest.param(flaw, marks=[STORAGE] if flaw == OUT_OF_LINE else []) for flaw in BAD])
async def test_a_flawed_table_is_reported(shared: str, flaw: str) -> None:
    made, expected = BAD[flaw]
    assert any(expected in fault for fault in await faults_with(shared, made))


async def faults_with(dsn: str, made: str) -> Sequence[str]:
    """What the check says once this SQL has run; the SQL is undone."""
    conn = await owner(dsn)
    unit = conn.transaction()
    await unit.start()
    try:
        await conn.execute(await with_roles(conn, made))
        return await faults(conn)
    finally:
        await unit.rollback()
        await conn.close()


@pytest.mark.parametrize("kind", ["app", "worker"])
async def test_a_role_that_works_can_bypass_nothing(shared: str, kind: str) -> None:
    conn = await owner(shared)
    name = (await read_roles(conn))._asdict()[kind]
    try:
        role = await conn.fetchrow(
            "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolcanlogin"
            " from pg_roles where rolname = $1",
            name,
        )
        member_of = await conn.fetchval("select count(*) from pg_auth_members where member = $1::text::regrole", name)
    finally:
        await conn.close()
    assert role is not None
    assert tuple(role) == (False, False, False, False, False, True)
    assert member_of == 0
