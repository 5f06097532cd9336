"""What a cached context depends on: the transactions of its agent, and those whose agent is unknown."""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import pytest

from newton.db.pool import Database, Tx, before_commit, connect, note_stored_context
from newton.db.transaction_log import TRANSACTION_SQL
from newton.errors import ConflictError
from newton.memory.agents import SQL, get_or_create_agent
from tests.scenarios.test_given_again import undisturbed
from tests.statements import watched_database
from tests.support import ANA, BEN, NOON

Write = Callable[[Tx, UUID], Awaitable[None]]

# A later transaction that ends earlier, on the node of the agent.
LATER_SQL = "select pg_current_xact_id() from (select count(*) from runtime.agents where agent_id = $1) as node"
UNKNOWN = pytest.mark.one_server("the coordinator does not know of which agent a transaction on a node is")
BY = pytest.mark.parametrize("by", [ANA, pytest.param(BEN, marks=UNKNOWN)])


@pytest.fixture
async def other(db: Database, dsn: str) -> AsyncIterator[Database]:
    """The database as another process opens it. Ana and Ben are there."""
    for name in ("ana", "ben"):
        await get_or_create_agent(db, name, now=NOON)
    opened = await Database.open(dsn, size=1)
    yield opened
    await opened.close()


async def write(tx: Tx, agent: UUID) -> None:
    await SQL["set_model"].execute(tx, agent_id=agent, model="large")


async def write_unnoted(tx: Tx, agent: UUID) -> None:
    """Write as a function of the database does, whose call does not tell that it writes."""
    await tx.execute(SQL["set_model"].sql, agent, "large")


async def write_at_commit(tx: Tx, agent: UUID) -> None:
    before_commit(lambda open_tx: write(open_tx, agent))


async def store_context(tx: Tx, agent: UUID) -> None:
    await write(tx, agent)
    note_stored_context(await tx.fetchval("select xmin::text::bigint from runtime.agents where agent_id = $1", agent))


async def store_and_write(tx: Tx, agent: UUID) -> None:
    await store_context(tx, agent)
    await write(tx, agent)


async def fail(tx: Tx, agent: UUID) -> None:
    await write(tx, agent)
    raise ConflictError("This is rolled back.", hint="Do nothing.")


@pytest.mark.parametrize(
    ("work", "by", "changed"),
    [
        pytest.param(write, BEN, False, marks=UNKNOWN),
        pytest.param(write_at_commit, BEN, False, marks=UNKNOWN),
        (store_context, ANA, False),
        (write, ANA, True),
        (write_at_commit, ANA, True),
        (store_and_write, ANA, True),
        (write_unnoted, ANA, True),
        pytest.param(write_unnoted, BEN, True, marks=UNKNOWN),
        pytest.param(fail, BEN, True, marks=UNKNOWN),
    ],
)
async def test_only_the_agent_itself_changes_what_it_is_shown(
    db: Database, other: Database, work: Write, by: UUID, *, changed: bool
) -> None:
    async def is_unchanged() -> bool:
        earlier = await db.current_snapshot(ANA)
        try:
            async with db.transaction(by) as tx:
                await work(tx, by)
        except ConflictError:
            pass
        return not db.transaction_log.has_changed(ANA, earlier, await db.current_snapshot(ANA))

    assert await undisturbed(is_unchanged) is not changed


@BY
async def test_what_another_process_writes_is_of_an_unknown_agent(db: Database, other: Database, by: UUID) -> None:
    earlier = await db.current_snapshot(ANA)
    async with other.transaction(by) as tx:
        await write(tx, by)
    assert db.transaction_log.has_changed(ANA, earlier, await db.current_snapshot(ANA))


@BY
async def test_a_transaction_that_was_open_at_the_first_snapshot_counts_once_it_ends(
    db: Database, other: Database, dsn: str, by: UUID
) -> None:
    async def is_unchanged() -> bool:
        async with connect(dsn) as conn, db.transaction(by) as tx:
            await write(tx, by)
            await conn.execute(LATER_SQL, ANA)
            earlier = await db.current_snapshot(ANA)
            assert earlier.in_progress
            assert not db.transaction_log.has_changed(ANA, earlier, earlier)
        return not db.transaction_log.has_changed(ANA, earlier, await db.current_snapshot(ANA))

    assert await undisturbed(is_unchanged) is (by == BEN)


@UNKNOWN
async def test_nothing_is_asked_while_a_hook_holds_its_lock(other: Database, dsn: str) -> None:
    lock_sql = "select pg_advisory_xact_lock(1)"

    async def lock(tx: Tx) -> None:
        await tx.execute(lock_sql)

    async with watched_database(dsn, ANA) as (db, sent):
        await db.current_snapshot(ANA)
        async with db.transaction(ANA) as tx:
            await write(tx, ANA)
            before_commit(lock)
    assert sent[-3:] == [TRANSACTION_SQL, lock_sql, "commit"]
