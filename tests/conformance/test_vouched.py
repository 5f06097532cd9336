"""What a person marked, settled, confirmed, ingested or said again is theirs, though a model stated it first."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from newton.db.pool import Database
from tests.system.served import served

SWEEP = "The chimney sweep comes on Thursday mornings."
TENANT = "The tenant of the upper flat is {}."


@dataclass(frozen=True)
class Speakers:
    """Clients with the tokens of a person and of a model, for one agent."""

    person: httpx2.AsyncClient
    model: httpx2.AsyncClient

    async def tell(self, who: str, text: str, **fields: Any) -> str:
        told = await getattr(self, who).post("/v1/memories", json={"content": text, "source": "own", **fields})
        return told.raise_for_status().json()["memory_id"]

    async def delete(self, path: str, **query: Any) -> int:
        """The status of a deletion by the model, after its preview."""
        plan = (await self.model.delete(path, params=query)).json()
        if "token" not in plan:
            return plan["status"]
        return (await self.model.delete(path, params={**query, "token": plan["token"]})).status_code


@pytest_asyncio.fixture
async def both(db: Database, tmp_path: Path) -> AsyncGenerator[Speakers]:
    async with served(db, tmp_path) as api:
        tokens = [await api.token("ana", "admin", name=one, speaker=one) for one in ("person", "model")]
        async with api.http(tokens[0]) as person, api.http(tokens[1]) as model:
            yield Speakers(person, model)


async def test_a_model_deletes_no_fact_that_a_person_marked_as_core(both: Speakers) -> None:
    # S002-16
    kept, other = [await both.tell("model", f"Grandfather's {one} is in the bank.") for one in ("watch", "will")]
    (await both.person.patch(f"/v1/memories/{kept}", json={"core": True})).raise_for_status()
    assert [await both.delete(f"/v1/memories/{one}") for one in (kept, other)] == [403, 200]


@pytest.mark.parametrize(("keep", "is_vouched"), [("newer", True), ("both", True), (None, False)])
async def test_what_a_person_settled_is_vouched_for(both: Speakers, keep: str | None, *, is_vouched: bool) -> None:
    # S002-16
    known = await both.tell("person", TENANT.format("Mr Okafor"))
    done = await both.model.post(f"/v1/memories/{known}/supersede", json={"content": TENANT.format("Ms Okafor")})
    own = done.json()["superseded_by"]
    if keep:
        (await both.person.post(f"/v1/conflicts/{known}/settle", json={"keep": keep})).raise_for_status()
    newer = await both.model.post(f"/v1/memories/{own}/supersede", json={"content": TENANT.format("Mr Brown")})
    assert newer.json()["status"] == ("unsettled" if is_vouched else "superseded")
    codes = [
        await both.delete(f"/v1/memories/{own}"),
        (await both.model.post(f"/v1/memories/{own}/retract")).status_code,
    ]
    assert codes[0] == (403 if is_vouched else 200) and (codes[1] == 403) is is_vouched


async def test_a_model_deletes_with_its_message_nothing_that_a_person_confirmed(both: Speakers) -> None:
    # S002-16
    said = {"messages": [{"role": "user", "content": "The plumber comes on Monday at eight."}]}
    (await both.model.post("/v1/sessions/rep/messages", json=said)).raise_for_status()
    listed = (await both.person.get("/v1/memories", params={"kinds": ["exchange", "fact"]})).json()["items"]
    ids = {one["kind"]: one["memory_id"] for one in listed}
    (await both.person.post(f"/v1/memories/{ids['fact']}/confirm", json={})).raise_for_status()
    assert await both.delete(f"/v1/memories/{ids['exchange']}", include_derived=True) == 403


@pytest.mark.parametrize("added", ["", "\n\n# Stove\n\nTake the small stove."])
async def test_a_document_that_a_person_ingested_is_not_the_models(both: Speakers, added: str) -> None:
    # S002-16
    document = {"name": "packing.md", "ref": "packing.md", "source": "own"}
    text = "# Tent\n\nTake the green tent."
    (await both.model.post("/v1/documents", json={**document, "content": text})).raise_for_status()
    stored = await both.person.post("/v1/documents", json={**document, "content": text + added})
    again = await both.model.post("/v1/documents", json={**document, "content": "# Tent\n\nTake no tent."})
    assert (again.status_code, await both.delete(f"/v1/documents/{stored.json()['document_id']}")) == (403, 403)
