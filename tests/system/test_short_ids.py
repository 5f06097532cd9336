"""The end of an id, as every interface shows it, is accepted wherever HTTP takes an id."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from newton.db.pool import Database
from newton.ids import derive_agent_id
from tests.system.served import Api, served

REASON = {"kind": "analysis", "text": "it has forty seats"}


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
        yield made


@pytest.fixture
async def ana(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with api.http(await api.token("ana")) as client:
        yield client


async def post(client: httpx2.AsyncClient, path: str, **body: object) -> httpx2.Response:
    return await client.post(f"/v1/{path}", json=body) if body else await client.post(f"/v1/{path}")


async def test_an_id_may_be_given_by_its_end(ana: httpx2.AsyncClient) -> None:
    fact = (await post(ana, "memories", content="The spare key is at Ben's.")).json()["memory_id"]
    assert (await ana.get(f"/v1/memories/{fact[-8:]}")).json()["memory_id"] == fact
    assert (await post(ana, f"memories/{fact[-6:]}/confirm")).json()["memory_id"] == fact
    new = (await post(ana, f"memories/{fact[-8:]}/supersede", content="The spare key is at Eva's.")).json()
    assert new["memory_id"] == fact
    await post(ana, "censors", trigger="sell the boat", reason="it is not ours", action="block")
    censor = (await ana.get("/v1/censors")).json()["items"][0]["memory_id"]
    assert (await post(ana, f"censors/{censor[-8:]}/relax", reason="a joke")).json()["censor_id"] == censor
    made = await post(ana, "decisions", description="Rent the hall", confidence=0.7, reasons=[REASON])
    hall = made.json()["decision_id"]
    assert (await ana.get(f"/v1/decisions/{hall[-8:]}")).json()["decision_id"] == hall
    assert (await post(ana, f"decisions/{hall[-8:]}/done")).json() == {"decision_id": hall}
    context = (await post(ana, "context", input="Where is the spare key?", exclude=[fact[-8:]])).json()
    bundle = context["bundle_id"]
    assert (await ana.get(f"/v1/bundles/{bundle[-8:]}")).json()["bundle_id"] == bundle
    proposed = await post(ana, "identity/proposals", section="instruction", text="Answer in Dutch")
    assert proposed.json() == {"is_new": True}, proposed.text
    line = (await ana.get("/v1/identity/proposals")).json()["items"][0]["line_id"]
    assert (await post(ana, f"identity/proposals/{line[-8:]}/accept")).json()["line_id"] == line
    token = (await ana.delete(f"/v1/memories/{fact[-8:]}")).json()["token"]
    gone = await ana.delete(f"/v1/memories/{fact[-8:]}", params={"token": token})
    assert fact in gone.json()["items"]


async def test_an_end_that_does_not_identify_one_is_refused_as_at_the_command_line(
    api: Api, ana: httpx2.AsyncClient
) -> None:
    first = (await post(ana, "memories", content="The spare key is at Ben's.")).json()["memory_id"]
    async with api.db.transaction(derive_agent_id("ana")) as tx:
        twin = UUID(f"01999999{UUID(first).hex[8:]}")
        await tx.execute(
            "insert into memory.memories select (jsonb_populate_record(m, $1::jsonb)).* from memory.memories as m"
            " where memory_id = $2",
            json.dumps({"memory_id": str(twin), "content_hash": "\\x" + "00" * 32, "ref": None}),
            UUID(first),
        )
    several = await ana.get(f"/v1/memories/{first[-8:]}")
    assert (several.status_code, several.json()["hint"]) == (409, "Give more digits of the id.")
    for ref, status in ((first[-5:], 422), ("spare-key", 422), ("abcdef01", 404), (first, 200)):
        assert (await ana.get(f"/v1/memories/{ref}")).status_code == status, ref
