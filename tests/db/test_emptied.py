"""What a test leaves behind does not reach the next one."""

import asyncio
from uuid import UUID

import pytest

from tests.emptied import Common, cancel


async def test_an_open_transaction_is_reported_and_the_database_is_emptied_all_the_same(
    common: Common, agent: UUID
) -> None:
    holding = asyncio.Event()

    async def hold() -> None:
        async with common.db.transaction(agent) as tx:
            await tx.execute("delete from runtime.idempotency_keys where agent_id = $1", agent)
            holding.set()
            await asyncio.Event().wait()

    left = asyncio.create_task(hold())
    await holding.wait()
    with pytest.raises(AssertionError, match="still open"):
        await common.empty()
    assert await common.owner.fetchval("select count(*) from runtime.agents") == 0
    await cancel({left})
    assert left.done() and common.is_idle
    await common.empty()
