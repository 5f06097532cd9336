"""Erasing a person over HTTP and by the client: a preview, a confirmation by an admin, of one agent only."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from newton.client import ApiError
from newton.db.pool import Database
from newton.ids import derive_agent_id
from tests.support import has_code
from tests.system.lines import everything
from tests.system.served import Api, served

TOLD = ("Aleksandra Novak, everybody calls her Ola, has the key.", "Ola moves out in May.", "Olaf likes the park.")


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


async def test_a_person_is_previewed_confirmed_and_gone_and_nobody_elses_is_touched(api: Api, db: Database) -> None:
    # S8
    for agent in ("ana", "ben"):
        async with api.client(await api.token(agent)) as client:
            for text in TOLD:
                await client.remember(text)
    async with api.client(await api.token("ana")) as ana:
        preview = await ana.preview_erasure("aleksandra novák")
        assert {"Ola", "Aleksandra Novak"} <= set(preview["names"]) and preview["counts"]["fact"] == 2
        with pytest.raises(ApiError, check=has_code("conflict")):
            await ana.erase_person("aleksandra novák", token="00000000")
        done = await ana.erase_person("aleksandra novák", token=preview["token"])
        assert done["remains"] == {} and "Ola" not in str(done)
    dump = "\n".join(await everything(db, derive_agent_id("ana")))
    async with db.transaction(derive_agent_id("ana")) as tx:  # the dump includes stored responses
        assert await tx.fetchval("select count(*) from runtime.idempotency_keys") > len(TOLD)
    assert "Ola " not in dump and "Novak" not in dump and "Olaf likes" in dump
    assert "Ola moves out" in "\n".join(await everything(db, derive_agent_id("ben")))


async def test_only_an_admin_of_the_agent_may_see_or_erase_what_is_known_of_a_person(api: Api) -> None:
    # S9
    async with api.client(await api.token("ben")) as ben:
        await ben.remember(TOLD[0])
        token = (await ben.preview_erasure("Aleksandra Novak"))["token"]
    async with api.client(await api.token("ben", "write")) as writer:
        with pytest.raises(ApiError, check=has_code("forbidden")):
            await writer.preview_erasure("Aleksandra Novak")
        with pytest.raises(ApiError, check=has_code("forbidden")):
            await writer.erase_person("Aleksandra Novak", token=token)
    async with api.client(await api.token("ana")) as ana:
        with pytest.raises(ApiError, check=has_code("invalid_input"), match="Nothing is stored"):
            await ana.erase_person("Aleksandra Novak", token=token)
