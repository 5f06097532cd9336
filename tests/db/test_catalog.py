"""What the catalog of a migrated database must say, read from the catalog and not from the files."""

from collections.abc import Sequence

import asyncpg
import pytest

from newton.db.pool import Tx
from newton.db.roles import read_roles
from tests.cases import load_cases
from tests.cluster import with_roles
from tests.db.catalog import AGENTLESS, faults, tables

CASES = load_cases(__file__)

OUT_OF_LINE = "vectors kept out of line"
STORAGE = pytest.mark.one_server("Citus refuses to change the storage of a column")
BAD = CASES["BAD"] | {
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
