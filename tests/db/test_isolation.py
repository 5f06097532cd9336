"""No statement of the application reaches another agent's rows, whatever it forgets to say."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest

from newton.agent.llm import usage
from newton.agent.services.memories import MemoryService
from newton.brain import queries
from newton.brain.drafts import TrackRecord
from newton.brain.ledger import find_by_refs
from newton.brain.queries import DecisionFilter
from newton.clock import ManualClock
from newton.cognition import working_set
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources import session_state
from newton.db.pool import Database, Tx, connect
from newton.db.roles import read_roles
from newton.dialogue import log, session_close, sessions
from newton.heart import episodes
from newton.heart.facts import fact_store
from newton.memory import store
from newton.memory.memory_reader import fetch_preceding
from newton.memory.vectors import read_backlog
from newton.providers.fakes import HashEmbedder
from tests.cluster import on, with_roles
from tests.conftest import database
from tests.db.catalog import AGENTLESS, tables
from tests.db.world import SESSION, contexts, live, statement, told
from tests.support import DEFAULT_THRESHOLDS, NOON, agent_scope, count, ground, teller

WRITABLE = """
select string_agg(quote_ident(attname), ', ') from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
"""

ENTITIES = "select memory_id from heart.entities where agent_id = $1 order by 1 limit 2"
CONTENT = "select md5(string_agg(to_json(t)::text, '' order by to_json(t)::text)) from {table} as t where agent_id = $1"
# Functions with the rights of the owner, whom row level security may not restrict, and an argument for each parameter.
DEFINERS = """
select p.proname as name, format(
    'select %s(%s)', p.oid::regproc, (
        select string_agg(
            case t.type::regtype::text
                when 'uuid' then format('%L', ($1::uuid[])[least(t.place, 3)])
                when 'uuid[]' then format('%L', ($1::uuid[])[2:])
                when 'timestamp with time zone' then '''2999-01-01'''
                when 'text' then '''.'''
                else 'null'
            end || '::' || t.type::regtype, ', ' order by t.place
        )
        from unnest(p.proargtypes::oid[]) with ordinality as t (type, place)
    )
) as call
from pg_proc as p
where p.prosecdef and p.proargnames[1] = 'target_agent'
order by 1
"""


@dataclass(frozen=True, slots=True)
class World:
    """A database in which ana and ben have lived the same life."""

    dsn: str
    db: Database
    ana: UUID
    ben: UUID
    names: tuple[str, ...]


@pytest.fixture(scope="module")
async def world(server: str, template: str) -> AsyncIterator[World]:
    async with database(server, template) as dsn:
        db = await Database.open(dsn, size=4)
        owner = await asyncpg.connect(dsn)
        names = tuple(sorted(await tables(owner) - AGENTLESS))
        await owner.close()
        yield World(dsn, db, await live(db, "ana"), await live(db, "ben"), names)
        await db.close()


async def leaks(tx: Tx, names: tuple[str, ...], agent_id: UUID) -> list[str]:
    """The tables of which this unit of work sees rows of anybody but the agent."""
    seen = {name: await tx.fetchval(f"select count(*) from {name} where agent_id <> $1", agent_id) for name in names}
    return [name for name, rows in seen.items() if rows]


async def refusal(db: Database, agent_id: UUID, sql: str, *args: object) -> str:
    """How the database answers a statement in the agent's scope: what it changed, or the error's name."""
    try:
        async with db.transaction(agent_id) as tx:
            return await tx.execute(sql, *args)
    except asyncpg.PostgresError as error:
        return type(error).__name__


async def test_the_world_has_rows_of_both_agents_in_every_table(world: World) -> None:
    owner = await asyncpg.connect(world.dsn)
    try:
        for name in world.names:
            rows = await owner.fetch(f"select distinct agent_id from {name}")
            assert {row["agent_id"] for row in rows} == {world.ana, world.ben}, name
    finally:
        await owner.close()


async def test_an_agent_sees_its_own_rows_and_no_other_in_every_table(world: World) -> None:
    for agent_id in (world.ana, world.ben):
        async with world.db.transaction(agent_id) as tx:
            assert await leaks(tx, world.names, agent_id) == []
            for name in world.names:
                assert await tx.fetchval(f"select count(*) from {name}") > 0, name
    async with world.db.transaction(world.ana) as tx:
        for name in world.names:
            assert await tx.fetch(f"select * from {name} where agent_id = $1", world.ben) == [], name


async def test_nothing_of_the_other_agent_can_be_updated_deleted_or_moved(world: World) -> None:
    allowed = {
        "memory.memories": "uses = uses + 1",
        "memory.outbox": "attempts = attempts + 1",
        "cognition.working_set": "access_count = access_count + 1",
    }
    emptied = {"memory.outbox", "cognition.working_set", "runtime.idempotency_keys", "runtime.events", "runtime.jobs"}
    emptied |= {
        "dialogue.responses",
        "heart.items",
        "runtime.tool_permissions",
        "runtime.failing_models",
        "runtime.projects",
        "heart.proposed_items",
        "memory.tombstones",
    }
    for name in world.names:
        change = allowed.get(name, "agent_id = agent_id")
        updated = await refusal(world.db, world.ana, f"update {name} set {change} where agent_id = $1", world.ben)
        deleted = await refusal(world.db, world.ana, f"delete from {name} where agent_id = $1", world.ben)
        assert updated == ("UPDATE 0" if name in allowed else "InsufficientPrivilegeError"), name
        assert deleted == ("DELETE 0" if name in emptied else "InsufficientPrivilegeError"), name
    # a row cannot be given to another agent
    for name in world.names:
        moved = await refusal(world.db, world.ana, f"update {name} set agent_id = $1", world.ben)
        # Citus refuses to move a row between nodes before it looks at the rights
        assert moved in ("InsufficientPrivilegeError", "FeatureNotSupportedError"), name


async def test_no_row_can_be_written_for_another_agent(world: World) -> None:
    owner = await asyncpg.connect(world.dsn)
    try:
        for name in world.names:
            row = await owner.fetchval(
                f"select to_json(t)::text from {name} as t where agent_id = $1 limit 1", world.ben
            )
            own = await owner.fetchval(WRITABLE, name)
            sql = f"insert into {name} ({own}) select {own} from json_populate_record(null::{name}, $1)"
            sql += " returning agent_id"
            written = await refusal(world.db, world.ana, sql, row)
            assert written == "InsufficientPrivilegeError", name
    finally:
        await owner.close()


async def test_every_function_of_the_stores_answers_from_its_own_agent(world: World) -> None:
    async with world.db.transaction(world.ana) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=world.ana, ref=SESSION, now=NOON)
        own = {row["memory_id"] for row in await tx.fetch("select memory_id from memory.memories")}
        totals = await store.count_by_kind(tx, agent_id=world.ana)
    verbs = MemoryService(
        scope=agent_scope(
            agent_id=world.ana,
            origin="test",
            db=world.db,
            clock=ManualClock(NOON),
            count_tokens=count,
            thresholds=DEFAULT_THRESHOLDS,
            embedder=HashEmbedder(),
        )
    )
    found = (await verbs.recall("where is the blue kettle?", limit=100)).memories
    assert found
    assert {f.memory_id for f in found} <= own
    assert sum(totals.values()) == len(own)
    bundle = await contexts(world.db).build(
        ContextBuildRequest(agent_id=world.ana, input="kettle", tokens=900, session_id=session_id)
    )
    assert {candidate.memory_id for candidate in bundle.candidates} <= own


async def test_the_stores_find_nothing_of_the_other_agent_even_when_asked_for_it_by_id(world: World) -> None:
    """A wrong `agent_id` argument, which every statement trusts, is stopped by the scope."""
    async with world.db.transaction(world.ben) as tx:
        theirs = await sessions.ensure_session(tx, agent_id=world.ben, ref=SESSION, now=NOON)
    async with world.db.transaction(world.ana) as tx:
        assert await store.count_by_kind(tx, agent_id=world.ben) == {}
        assert await store.find_by_ref(tx, [("f1", b""), ("f2", b"")], agent_id=world.ben, kind="fact") == set()
        assert (
            await log.load_messages(tx, [log.MessageRange(0, log.MAX_POSITION)], agent_id=world.ben, session_id=theirs)
            == []
        )
        assert await fetch_preceding(tx, agent_id=world.ben, thread_id=theirs, position=99, limit=10) == ()
        assert await session_state.find_session_frame(tx, agent_id=world.ben, session_id=theirs) is None
        assert await working_set.list_memories(tx, agent_id=world.ben, session_id=theirs) == []
        assert await working_set.list_profile_stats(tx, agent_id=world.ben) == []
        assert await usage.count_tokens_today(tx, agent_id=world.ben, now=NOON) == 0
        assert (await read_backlog(tx, agent_id=world.ben)).waiting == 0
        assert await queries.list_decisions(tx, DecisionFilter(), agent_id=world.ben, now=NOON) == []
        assert await queries.list_reviewed_decisions(tx, agent_id=world.ben) == []
        assert (
            await queries.get_track_record(tx, agent_id=world.ben, category="architecture", now=NOON) == TrackRecord()
        )
        assert await find_by_refs(tx, ["d1"], agent_id=world.ben) == {}
        assert not await session_close.close_session(tx, session_id=theirs, ctx=teller(world.ben))


async def test_the_stores_write_nothing_for_the_other_agent(world: World) -> None:
    ctx = teller(world.ben)
    for attempt in range(3):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with world.db.transaction(world.ana) as tx:
                match attempt:
                    case 0:
                        await fact_store.add_facts(tx, [statement("new", "Ben is watched")], ctx=ground(ctx))
                    case 1:
                        await episodes.add_episodes(tx, [told("new")], ctx=ctx)
                    case _:
                        await sessions.ensure_session(tx, agent_id=world.ben, ref="new", now=NOON)


async def test_a_function_with_the_rights_of_the_owner_refuses_another_agent(world: World) -> None:
    async with connect(world.dsn) as owner:
        entities = [row["memory_id"] for row in await owner.fetch(ENTITIES, world.ben)]
        before = {name: await owner.fetchval(CONTENT.format(table=name), world.ben) for name in world.names}
        calls = {row["name"]: row["call"] for row in await owner.fetch(DEFINERS, [world.ben, *entities])}
    assert {"forget", "merge_entities", "erase_agent", "delete_agent"} < calls.keys()
    for name, call in calls.items():
        assert await refusal(world.db, world.ana, call) == "InsufficientPrivilegeError", name
    async with connect(world.dsn) as owner:
        for name, content in before.items():
            assert await owner.fetchval(CONTENT.format(table=name), world.ben) == content, name


async def test_without_a_scope_every_table_is_empty(world: World) -> None:
    conn = await asyncpg.connect(world.dsn)
    try:
        async with conn.transaction():
            await conn.execute(await with_roles(conn, "set local role newton_app"))
            for name in world.names:
                assert await conn.fetchval(f"select count(*) from {name}") == 0, name
            await conn.execute("set local newton.agent_id = ''")
            for name in world.names:
                assert await conn.fetchval(f"select count(*) from {name}") == 0, name
    finally:
        await conn.close()


async def test_a_scope_that_is_no_agent_is_an_error_and_not_everything(world: World) -> None:
    conn = await asyncpg.connect(world.dsn)
    try:
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            async with conn.transaction():
                await conn.execute(await with_roles(conn, "set local role newton_app"))
                await conn.execute("set local newton.agent_id = 'all'")
                await conn.fetch("select * from memory.memories")
    finally:
        await conn.close()


async def as_application(dsn: str) -> Tx:
    """A connection that logs in as the application's role, with a password where the server asks for one."""
    async with connect(dsn) as owner:
        app = (await read_roles(owner)).app
        await owner.execute(f"alter role {app} password 'newton'")
    own = on(dsn, urlsplit(dsn).path[1:], user=f"{app}:newton")
    return await asyncpg.connect(own, statement_cache_size=0)  # `discard all` drops prepared statements


ESCAPES = (
    "reset role",
    "set role none",
    "reset all",
    "discard all",
    "reset session authorization",
    "set session authorization default",
    "set row_security = on",
)
ATTACKS = (
    "set row_security = off; select * from memory.memories",
    "set role postgres",
    "set session authorization postgres",
    "alter table memory.memories disable row level security",
    "drop policy agent on memory.memories",
    "create policy open on memory.memories using (true)",
    "alter role newton_app bypassrls",
    "truncate memory.outbox",
    "create table memory.mine (id int)",
    "call runtime.isolate('memory.memories')",
    "select * from pg_read_file('postgresql.conf')",
    "copy memory.memories to program 'cat'",
    "update runtime.schema_migrations set sha256 = ''",
    "update memory.memories set trust = 'operator'",
    "update dialogue.messages set content = 'x'",
)


async def test_an_application_that_logs_in_as_itself_can_neither_escape_nor_loosen_its_bonds(world: World) -> None:
    conn = await as_application(world.dsn)
    try:
        for escape in ESCAPES:
            await conn.execute(escape)
            assert await conn.fetchval("select current_user::text = runtime.app_role()"), escape
            for name in world.names:
                assert await conn.fetchval(f"select count(*) from {name}") == 0, (escape, name)
        for attack in ATTACKS:
            with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError)):
                await conn.execute(await with_roles(conn, attack))
            await conn.execute("reset row_security")
    finally:
        await conn.close()


async def test_the_scope_ends_with_its_transaction(world: World) -> None:
    single = await Database.open(world.dsn, size=1)
    try:
        async with single.transaction(world.ana) as tx:
            pid = await tx.fetchval("select pg_backend_pid()")
        with pytest.raises(asyncpg.DivisionByZeroError):
            async with single.transaction(world.ana) as tx:
                await tx.fetchval("select 1 / 0")
        for agent_id in (world.ben, world.ana):
            async with single.transaction(agent_id) as tx:
                assert await tx.fetchval("select pg_backend_pid()") == pid, "the same connection"
                assert await leaks(tx, world.names, agent_id) == []
        pool = single._pool  # pyright: ignore[reportPrivateUsage]  # the connection as the next caller gets it
        async with pool.acquire() as raw:
            assert await raw.fetchval("select pg_backend_pid()") == pid
            assert not await raw.fetchval("select current_setting('newton.agent_id', true)")
            await raw.execute(await with_roles(raw, "set role newton_app"))
            assert await raw.fetchval("select count(*) from memory.memories") == 0
            await raw.execute("reset role")
    finally:
        await single.close()


async def test_a_table_that_lost_its_policy_is_noticed(world: World) -> None:
    """The bug, planted: the same check that passes above must fail here."""
    policy = "(agent_id = nullif(current_setting('newton.agent_id', true), '')::uuid)"
    async with connect(world.dsn) as owner:
        for lost in (world.names[::2], world.names[1::2]):
            await owner.execute("".join(f"alter policy agent on {name} using (true);" for name in lost))
            try:
                async with world.db.transaction(world.ana) as tx:
                    assert await leaks(tx, world.names, world.ana) == list(lost)
            finally:
                await owner.execute("".join(f"alter policy agent on {name} using {policy};" for name in lost))
    async with world.db.transaction(world.ana) as tx:
        assert await leaks(tx, world.names, world.ana) == []
