"""What a test leaves behind does not reach the next one."""

import asyncio
from uuid import UUID

import asyncpg
import pytest

from newton.agent.background_runs import BackgroundCompactions
from newton.db.pool import Database
from newton.memory import agents
from tests.emptied import Common, Lent, without_leftovers
from tests.support import NOON


@pytest.mark.slow
async def test_an_open_transaction_is_reported_and_the_database_is_emptied_all_the_same(
    common: Common, agent: UUID
) -> None:
    holding = asyncio.Event()

    async def hold() -> None:
        async with common.db.transaction(agent) as tx:
            await tx.execute("delete from runtime.idempotency_keys where agent_id = $1", agent)
            holding.set()
            await asyncio.Event().wait()

    async with without_leftovers():
        left = asyncio.create_task(hold())
        await holding.wait()
        with pytest.raises(AssertionError, match="still open"):
            await common.empty()
        assert await common.owner.fetchval("select count(*) from runtime.agents") == 0
    assert left.done() and common.is_idle
    await common.empty()


async def test_what_a_test_would_do_later_in_the_background_is_cancelled_at_its_end() -> None:
    started = list[str]()

    async def compact() -> None:
        started.append("compaction")

    key = (UUID(int=1), UUID(int=2))
    async with without_leftovers():
        compactions = BackgroundCompactions(idle_seconds=0.01)
        compactions.start_when_idle(key, compact)
        lasting = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0.05)
    assert started == [] and lasting.cancelled()
    compactions.start_when_idle(key, compact)
    await asyncio.sleep(0.05)
    assert started == ["compaction"]


async def test_a_database_that_is_lent_again_is_empty_and_keeps_its_schema(lent: Lent) -> None:
    async with lent.one() as dsn:
        left_open = await Database.open(dsn, size=1)
        await agents.get_or_create_agent(left_open, "ana", now=NOON)
    left_open.terminate()
    async with lent.one() as again:
        assert again == dsn
        connection = await asyncpg.connect(again)
        assert await connection.fetchval("select count(*) from runtime.agents") == 0
        with pytest.raises(asyncpg.RaiseError, match="change the schema of a `clone`"):
            await connection.execute("create table public.more (n int)")
        await connection.close()
