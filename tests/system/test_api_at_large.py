"""What the API says of itself is so."""

import asyncio
from pathlib import Path

import pytest

from newton.db.pool import Database
from tests.endpoint import endpoint, says
from tests.system.fuzzing import fuzz
from tests.system.served import served
from tests.system.strangers import HALL, Street, at_once, echo

pytestmark = pytest.mark.slow


async def test_no_request_makes_it_fail_and_no_answer_is_otherwise_than_described(db: Database, tmp_path: Path) -> None:
    # S2
    async with (
        endpoint(says(["Fine."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        assert await asyncio.to_thread(fuzz, api.url, await api.token("ana"), examples=2) > 80


async def test_agents_that_call_at_random_see_nothing_of_each_other(db: Database, tmp_path: Path) -> None:
    # S1, S9
    street = Street()
    async with (
        endpoint(echo(street)) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        await at_once(api, street, agents=4, calls=30)
        assert model.asked
    assert street.faults == []
    assert set(street.answered) == {*HALL, "events"}
    assert street.answered.total() - street.answered["events"] == 120 + 2
    assert street.refused.keys() - {429} == {401, 403, 404}, "429 only on a busy machine"
