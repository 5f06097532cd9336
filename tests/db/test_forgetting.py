"""Forgetting: everything that holds the words goes, what was made of them too or nothing at all, and a note stays."""

import asyncio
import re
from contextvars import Context
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Database, Tx
from newton.dialogue import session_close, sessions
from newton.dialogue.messages import Message
from newton.errors import ConflictError, NotFoundError
from newton.heart.entities import entity_changes, entity_store
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.ids import new_id
from newton.memory.forgetting import forget
from newton.memory.memory import WriteContext
from tests.cluster import connection, list_distributed, list_nodes
from tests.db.world import contexts, live
from tests.support import NOON, ground, teller

SECRET = NewFact(ref="s", content="The heirloom is under the xylophone", valid_from=NOON)
TABLES = """
select n.nspname || '.' || c.relname as name
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname in ('memory', 'heart', 'brain', 'dialogue', 'cognition', 'runtime') and c.relkind = 'r'
"""
HOLDS = "select exists (select from {} as t where t::text ilike $1)"


async def told(tx: Tx, *statements: NewFact, ctx: WriteContext) -> list[UUID]:
    await fact_store.add_facts(tx, statements, ctx=ground(ctx))
    return [await fact_store.find_fact_id(tx, s, agent_id=ctx.agent_id) for s in statements]


async def holding(dsn: str, word: str) -> list[str]:
    """The tables in which some row still holds the word, on all nodes of a cluster."""
    found: list[str] = []
    for node in await list_nodes(dsn):
        async with connection(node) as conn:
            names = {row["name"] for row in await conn.fetch(TABLES)} - await list_distributed(conn)
            found += [
                re.sub(r"_\d{6,}$", "", name)
                for name in sorted(names)
                if await conn.fetchval(HOLDS.format(name), f"%{word}%")
            ]
    return found


async def test_no_word_of_a_forgotten_memory_is_left_in_any_table(db: Database, agent: UUID, dsn: str) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        (secret,) = await told(tx, SECRET, ctx=ctx)
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
        line = Message(role="user", content="the heirloom is under the xylophone, you know", said_at=NOON)
        await sessions.append(tx, [line], session_id=session_id, ctx=ctx)
        said = await tx.fetchval("select memory_id from memory.memories where kind = 'exchange'")
    await contexts(db).build(ContextBuildRequest(agent_id=agent, input="where is it hidden under?", tokens=500))
    await contexts(db).build(ContextBuildRequest(agent_id=agent, input=line.content, tokens=1, session_id=session_id))
    assert "memory.memories" in await holding(dsn, "xylophon")
    async with db.transaction(agent) as tx:
        assert set(await forget(tx, [secret, said], derived=False, reason="a test", ctx=ctx)) == {secret, said}
    assert await holding(dsn, "xylophon") == []
    conn = await asyncpg.connect(dsn)
    rows = await conn.fetch("select memory_id, kind, reason, origin from memory.forgotten order by kind")
    assert [tuple(row) for row in rows] == [(said, "exchange", "a test", "test"), (secret, "fact", "a test", "test")]
    assert await conn.fetchval("select content from dialogue.messages") == "[forgotten]"
    await conn.close()


async def test_what_was_made_of_it_goes_along_or_nothing_goes(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        (secret,) = await told(tx, SECRET, ctx=ctx)
        derived = replace(SECRET, ref="d", content="It is hidden well", sources=(secret,))
        (made,) = await told(tx, derived, ctx=ctx)
        (of_made,) = await told(tx, replace(SECRET, ref="e", content="Well it is", sources=(made,)), ctx=ctx)
    with pytest.raises(ConflictError, match=r"2 memories are derived from what is to be forgotten.*--include-derived"):
        async with db.transaction(agent) as tx:
            await forget(tx, [secret], derived=False, reason="a test", ctx=ctx)
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.memories") == 3
        assert await tx.fetchval("select count(*) from memory.forgotten") == 0
        assert set(await forget(tx, [secret], derived=True, reason="a test", ctx=ctx)) == {secret, made, of_made}
        assert await tx.fetchval("select count(*) from memory.memories") == 0


async def test_what_is_not_there_cannot_be_forgotten(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        (secret,) = await told(tx, SECRET, ctx=teller(agent))
    with pytest.raises(NotFoundError, match="There is no memory"):
        async with db.transaction(agent) as tx:
            await forget(tx, [secret, new_id()], derived=True, reason="a test", ctx=teller(agent))
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.memories") == 1


async def test_every_kind_but_decisions_can_be_forgotten_and_another_agent_loses_nothing(db: Database) -> None:
    ana, ben = await live(db, "ana"), await live(db, "ben")
    async with db.transaction(ben) as tx:
        before = await tx.fetchval("select count(*) from memory.memories")
    async with db.transaction(ana) as tx:
        rows = await tx.fetch("select memory_id, kind from memory.memories where kind <> 'decision'")
        assert {row["kind"] for row in rows} >= {"exchange", "fact", "episode", "procedure", "censor", "passage"}
        await forget(tx, [row["memory_id"] for row in rows], derived=True, reason="a test", ctx=teller(ana))
        assert {row["kind"] for row in await tx.fetch("select kind from memory.memories")} == {"decision"}
    async with db.transaction(ben) as tx:
        assert await tx.fetchval("select count(*) from memory.memories") == before


async def test_the_application_may_delete_only_what_it_wrote_down_of_its_own_agent(db: Database) -> None:
    ana, ben = await live(db, "ana"), await live(db, "ben")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction(ana) as tx:
            await tx.execute("select memory.forget($1)", ben)
    async with db.transaction(ana) as tx:
        await tx.execute("select memory.forget($1)", ana)  # nothing was written down
    for agent_id in (ana, ben):
        async with db.transaction(agent_id) as tx:
            assert await tx.fetchval("select count(*) from memory.memories") > 0
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with db.transaction(ana) as tx:
            await tx.execute("delete from memory.memories")


async def test_a_relation_that_only_the_forgotten_tells_goes_along(db: Database, agent: UUID, dsn: str) -> None:
    ctx = teller(agent)
    both = [
        NewFact(ref="1", content="Mira loves Zorblax", valid_from=NOON, subject="Mira", attribute="loves"),
        NewFact(ref="2", content="Mira knows Priya", valid_from=NOON, subject="Mira", attribute="knows"),
        NewFact(ref="3", content="Mira knows Priya well", valid_from=NOON, subject="Mira", attribute="knows"),
    ]
    async with db.transaction(agent) as tx:
        secret, known, _ = await told(tx, *both, ctx=ctx)
        await entity_store.index_mentions(tx, ctx=ctx)
        await forget(tx, [secret, known], derived=False, reason="a test", ctx=ctx)
        left = await tx.fetch("select full_text from memory.memories where kind = 'relation'")
        assert [row["full_text"] for row in left] == ["Mira knows Priya"], "another fact still tells it"
        names = await tx.fetch("select name from heart.entities order by name")
        assert [row["name"] for row in names] == ["Mira", "Priya"]
    assert await holding(dsn, "zorblax") == []


async def test_an_entity_that_a_person_told_of_stays(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    async with db.transaction(agent) as tx:
        await entity_changes.declare_entities(tx, [EntityDeclaration(name="Zorblax", type="cat")], ctx=ctx)
        (secret,) = await told(tx, NewFact(ref="1", content="Mira loves Zorblax", valid_from=NOON), ctx=ctx)
        await entity_store.index_mentions(tx, ctx=ctx)
        await forget(tx, [secret], derived=False, reason="a test", ctx=ctx)
        assert [row["name"] for row in await tx.fetch("select name from heart.entities")] == ["Zorblax"]


async def test_the_episode_that_a_line_stands_in_goes_along_or_nothing_goes(
    db: Database, agent: UUID, dsn: str
) -> None:
    ctx = teller(agent)
    said = ("hello there", "the heirloom is under the xylophone", "the xylophone, really", "really", "good bye")
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s1", now=NOON)
        lines = [Message(role="user", content=words, said_at=NOON) for words in said]
        await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        assert await session_close.close_session(tx, session_id=session_id, ctx=ctx) == 1
        rows = await tx.fetch("select memory_id from memory.memories where kind = 'exchange' and position in (1, 2)")
    secret = [row["memory_id"] for row in rows]
    with pytest.raises(ConflictError, match="1 memories are derived from what is to be forgotten"):
        async with db.transaction(agent) as tx:
            await forget(tx, secret, derived=False, reason="a test", ctx=ctx)
    async with db.transaction(agent) as tx:
        assert len(await forget(tx, secret, derived=True, reason="a test", ctx=ctx)) == 3
    assert await holding(dsn, "xylophon") == []


async def index_mentions(db: Database, ctx: WriteContext) -> None:
    async with db.transaction(ctx.agent_id) as tx:
        await entity_store.index_mentions(tx, ctx=ctx)


async def test_mentions_are_recorded_before_a_memory_is_forgotten_or_after_it(db: Database, agent: UUID) -> None:
    ctx = teller(agent)
    xaver = NewFact(ref="a", content="Xaver lives in Bergen.", valid_from=NOON, subject="Xaver")
    async with db.transaction(agent) as tx:
        (first,) = await told(tx, xaver, ctx=ctx)
        await entity_store.index_mentions(tx, ctx=ctx)
    async with db.transaction(agent) as tx:
        await told(tx, replace(xaver, ref="b", content="Xaver rows."), ctx=ctx)
    async with db.transaction(agent) as tx:
        await forget(tx, [first], derived=True, reason="requested", ctx=ctx)
        indexing = asyncio.create_task(index_mentions(db, ctx), context=Context())
        await asyncio.wait([indexing], timeout=0.5)  # until it waits for a lock
    await indexing
    async with db.transaction(agent) as tx:
        (found,) = await entity_store.list_entities(tx, agent_id=agent, limit=10)
    assert (found.name, found.mentions) == ("Xaver", 1)
