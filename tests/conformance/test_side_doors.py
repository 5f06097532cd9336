"""What a person said is not displaced by another way than the operations that ask whether it may be."""

import json
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from newton.clock import SystemClock
from newton.db.pool import Database
from tests.system.served import Api, served

CORE, SAFE = "Ana lives in Porto.", "Ana's doctor gave her insulin."
NEWER = {CORE: "Ana lives in Vienna.", SAFE: "Ana's doctor gave her tea."}
ATTRIBUTES = {CORE: "lives in", SAFE: "remedy"}


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


async def send(http: httpx2.AsyncClient, method: str, path: str, **body: Any) -> Any:
    answer = await http.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def state_core_facts(person: httpx2.AsyncClient) -> Mapping[str, str]:
    """Let a person state a core fact and one on safety, each of a single-valued attribute; return their ids."""
    await send(person, "PUT", "/v1/attributes/remedy", single=True)
    ids = {
        text: (await send(person, "POST", "/v1/memories", content=text, subject="Ana", attribute=one))["memory_id"]
        for text, one in ATTRIBUTES.items()
    }
    await send(person, "PATCH", f"/v1/memories/{ids[CORE]}", core=True)
    return ids


async def read_state(person: httpx2.AsyncClient, memory_id: str) -> str:
    return (await person.get(f"/v1/memories/{memory_id}")).json()["state"]


@pytest.mark.parametrize("text", [CORE, SAFE])
@pytest.mark.parametrize("is_import", [False, True])
async def test_a_newer_value_of_an_app_stands_beside_a_core_fact(api: Api, text: str, *, is_import: bool) -> None:
    """The succession by attribute ends neither a core fact nor one on safety; a person settles it. S002-16"""
    async with api.http(await api.token("ana", speaker="person")) as person:
        ids = await state_core_facts(person)
        stated = {"content": NEWER[text], "subject": "Ana", "attribute": ATTRIBUTES[text]}
        async with api.http(await api.token("ana")) as app:
            if is_import:
                line = {"type": "fact", "ref": "f1", **stated, "at": SystemClock().now().isoformat()}
                (await app.post("/v1/import", content=json.dumps(line) + "\n")).raise_for_status()
            else:
                await send(app, "POST", "/v1/memories", **stated)
        assert await read_state(person, ids[text]) == ("CORE" if text == CORE else "NEW")
        (pair,) = (await person.get("/v1/conflicts")).json()["items"]
        assert (pair["newer"]["text"], pair["older"]["text"]) == (NEWER[text], text)
        await send(person, "POST", f"/v1/conflicts/{ids[text]}/settle", keep="newer")
        assert await read_state(person, ids[text]) == "SUPERSEDED"


@pytest.mark.parametrize("text", [CORE, SAFE])
async def test_an_app_ends_no_core_fact_by_a_bulk_change_or_an_edit(api: Api, text: str) -> None:
    """Of many facts, one that only a person may end is enough to refuse; a person may do it. S002-16"""
    async with (
        api.http(await api.token("ana", speaker="person")) as person,
        api.http(await api.token("ana")) as app,
    ):
        memory_id = (await state_core_facts(person))[text]
        chosen = {"kinds": ["fact"], "text": text}
        changes: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/v1/memories/bulk", {"action": "retract", "filter": chosen}),
            ("POST", "/v1/memories/bulk", {"action": "set_core", "core": False, "filter": chosen}),
            ("PATCH", f"/v1/memories/{memory_id}", {"core": False}),
            ("PATCH", f"/v1/memories/{memory_id}", {"subject": "Ben"}),
            ("PATCH", f"/v1/memories/{memory_id}", {"remove_subject": True}),
        ]
        for method, path, body in changes:
            token = (await person.post(path, json=body)).json()["token"] if method == "POST" else None
            for given in ({}, {"token": token}) if token else ({},):
                answer = await app.request(method, path, json={**body, **given})
                assert answer.status_code == 403, (body, answer.text)
        assert await read_state(person, memory_id) == ("CORE" if text == CORE else "NEW")
        await send(app, "PATCH", f"/v1/memories/{memory_id}", importance=9)
        for _, path, body in changes[2:4]:
            await send(person, "PATCH", path, **body)
