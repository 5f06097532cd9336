"""The API under many cut replies, many agents, and many strange requests."""

import asyncio
from pathlib import Path

import pytest

from newton.db.pool import Database
from tests.system.cutting import cutting
from tests.system.fuzzing import fuzz
from tests.system.served import each_once, effects, served
from tests.system.strangers import at_once

pytestmark = pytest.mark.slow


async def test_a_thousand_replies_that_were_cut_are_one_effect_each(db: Database, tmp_path: Path) -> None:
    # R4
    async with served(db, tmp_path) as api, cutting(api.url) as (url, proxy):
        async with api.client(await api.token("ana"), url=url) as client:
            await each_once(client, 999)
        assert len(proxy.cut) == 999
        assert await effects(api) == [333, 333, 333, 999]


async def test_fifty_agents_see_nothing_of_each_other(db: Database, tmp_path: Path) -> None:
    # S1
    async with served(db, tmp_path) as api:
        answered, foreign = await at_once(api, agents=50, calls=200)
    assert (answered, foreign) == (10_000, [])


async def test_no_request_of_many_makes_it_fail(db: Database, tmp_path: Path) -> None:
    # S2
    async with served(db, tmp_path) as api:
        assert await asyncio.to_thread(fuzz, api.url, await api.token("ana"), examples=200) > 5_000
