"""What a model's token can do to what a person wrote, tried with every operation, and the moves that it proposes."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio

from newton.db.pool import Database, Tx
from newton.operations.caller import OperationCaller
from newton.operations.declaration import load_operations
from newton.operations.runner import TOKEN
from tests.conformance.doors import DoorCall, DoorFunction, call_client, call_http, call_mcp
from tests.conformance.test_doors import begin_agent, fill_ids, read_example
from tests.stored_rows import Rows, read_rows
from tests.system.served import Api, served

OPERATIONS = load_operations()
WRITES = [one for one in OPERATIONS.values() if one.effect != "reads"]
# Tables with what a person wrote, and the columns that a model may change: counters, and that it contests a fact.
WRITTEN: Mapping[str, set[str]] = {
    "memory.memories": {"uses", "accessed_at", "confirmations"},
    "heart.facts": {"is_contested", "is_compared"},
    **{f"heart.{one}": set[str]() for one in ("procedures", "tenets", "censors", "items", "attributes")},
    **{f"dialogue.{one}": set[str]() for one in ("context_injections", "artifact_versions")},
}
# Tables in which a new row would end or alter what a person wrote.
ALTERING = ("dialogue.brief_closings", "heart.identity_versions", "dialogue.artifact_removals")
# What makes the example of an operation one against what the person wrote.
AGAINST: Mapping[str, Mapping[str, Any]] = {
    "add_artifact": {"session": "s", "name": "build.log"},
    "put_item": {"namespace": ["kitchen"], "key": "tea"},
    "delete_item": {"namespace": ["kitchen"], "key": "tea"},
    "link_decisions": {"type": "supersedes"},
    "delete_document": {"document_id": "boat.md"},
}
WORK = {"done"}  # that a decision is carried out says nothing of its outcome, which stays open


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def owner(dsn: str) -> AsyncIterator[Tx]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


def list_altered(before: Rows, after: Rows) -> Iterator[str]:
    """What a person wrote and is otherwise afterwards."""
    for table, changeable in WRITTEN.items():
        known, found = ({_leave_out(row, changeable) for row in rows[table]} for rows in (before, after))
        yield from (f"{table} {row}" for row in known - found)
    for table in (*ALTERING, "brain.decision_records"):
        for row in set(after.get(table, ())) - set(before.get(table, ())):
            fields = json.loads(row)
            adds_text = fields.get("kind") in ("thought", "amendment", "link") and not any(fields["body"].values())
            if table in ALTERING or not (adds_text or fields["body"].get("link") == "depends_on"):
                yield f"{table} {row}"


def _leave_out(row: str, columns: set[str]) -> str:
    return json.dumps({name: value for name, value in json.loads(row).items() if name not in columns}, sort_keys=True)


async def test_no_operation_of_a_model_alters_what_a_person_wrote(api: Api, owner: Tx) -> None:
    """Each with a token of every scope: outcomes, artifacts, procedures, goals, texts in view and others. S002-16"""
    world = await begin_agent(api)
    person = OperationCaller(newton=await api.app.state.agents.get(world.agent), origin="world", speaker="person")
    await person.procedures.approve("debugging")
    await person.curation.set_outcome(world.ids["set_outcome.memory_id"], "failure")
    await person.decisions.review(world.ids["other_id"], "failure")
    token = await api.token(world.agent, speaker="model")
    against = {**AGAINST, "decide": {"supersedes": [world.ids["decision_id"]]}}
    altered = dict[str, list[str]]()
    for operation in WRITES:
        before = await read_rows(owner)
        given = {**fill_ids(operation, read_example(operation), world.ids), **against.get(operation.name, {})}
        call = DoorCall(api, world.agent, token, operation, given)
        outcome = await call_http(call)
        if TOKEN in operation.parameters and outcome.code is None:
            await call_http(replace(call, arguments={**given, TOKEN: outcome.data[TOKEN]}))
        altered[operation.name] = list(list_altered(before, await read_rows(owner)))
    assert {name: rows for name, rows in altered.items() if rows and name not in WORK} == {}
    assert altered["done"]  # so the comparison sees a change


async def test_a_model_ends_what_it_put_in_view_and_closes_open_items(api: Api) -> None:
    # S002-16
    token = await api.token("ana", speaker="model")
    async with api.http(token) as model:
        put = (await model.post("/v1/sessions/s/injections", json={"text": "Ask for the key."})).json()
        said = [{"role": "assistant", "content": "Next step: I still need to call the mill."}]
        (await model.post("/v1/sessions/s/messages", json={"messages": said})).raise_for_status()
        taken = await model.delete(f"/v1/sessions/s/injections/{put['injection_id']}")
        (item,) = (await model.get("/v1/sessions/s/brief")).json()["items"]
        closed = await model.post("/v1/sessions/s/brief", json={"item_id": item["item_id"]})
        assert (item["kind"], taken.status_code, closed.status_code) == ("open_item", 200, 200)


@pytest.mark.parametrize("door", [call_http, call_client, call_mcp])
async def test_a_move_that_a_model_proposes_waits_for_the_person(api: Api, door: DoorFunction) -> None:
    """It is told, made once with the person's authority, and shows nothing of the target before. S002-16"""
    token = await api.token("ana", speaker="model")
    async with api.http(await api.token("ana", speaker="person")) as person:
        other = {"X-Newton-Project": "shop"}
        await person.post("/v1/memories", json={"content": "The till is blue."}, headers=other)
        fact = (await person.post("/v1/memories", json={"content": "Ana's boat is red."})).json()["memory_id"]

        async def propose(target: str) -> Any:
            arguments = {"memory_id": fact, "target": target}
            return await door(DoorCall(api, "ana", token, OPERATIONS["propose_move"], arguments))

        first, again = await propose("shop"), await propose("nowhere")
        assert (first.data["is_new"], again.data["is_new"]) == (True, False)
        (waiting,) = (await person.get("/v1/moves")).json()["items"]
        assert (waiting["memory_id"], waiting["target"], waiting["text"]) == (fact, "shop", "Ana's boat is red.")
        context = (await person.post("/v1/context", json={"input": "Hello", "max_tokens": 500})).json()
        (told,) = context["pending_approvals"]
        assert f"newton moves settle {UUID(fact).hex[-8:]} approve" in told
        done = await person.post(f"/v1/moves/{fact}/settle", json={"answer": "approve"})
        assert done.is_success, done.text
        assert (await person.get("/v1/moves")).json()["items"] == []
        moved = (await person.get("/v1/memories", headers=other)).json()["items"]
        assert {one["text"] for one in moved if one["kind"] == "fact"} == {"The till is blue.", "Ana's boat is red."}


async def test_a_move_that_is_rejected_or_goes_nowhere_changes_nothing(api: Api) -> None:
    """Only the person's approval says that there is no such project; out of a project it works alike. S002-16"""
    tokens = await api.token("ana", speaker="person"), await api.token("ana", "write", speaker="model")
    shop = {"X-Newton-Project": "shop"}
    async with api.http(tokens[0], **shop) as person, api.http(tokens[1], **shop) as model:
        facts = {
            target: (await person.post("/v1/memories", json={"content": f"The key of {target} is blue."})).json()[
                "memory_id"
            ]
            for target in ("nowhere", "person")
        }
        for target, fact in facts.items():
            proposed = await model.post("/v1/moves", json={"memory_id": fact, "target": target})
            assert proposed.json() == {"is_new": True}
        settle = f"/v1/moves/{facts['nowhere']}/settle"
        assert (await person.post(settle, json={"answer": "approve"})).status_code == 404
        assert (await person.post(settle, json={"answer": "reject"})).json()["items"] == []
        assert (await person.get(f"/v1/memories/{facts['nowhere']}")).json()["state"] == "NEW"
        again = await model.post("/v1/moves", json={"memory_id": facts["nowhere"], "target": "person"})
        assert (again.json(), (await person.post(settle, json={"answer": "approve"})).status_code) == (
            {"is_new": False},
            404,
        )
        made = await person.post(f"/v1/moves/{facts['person']}/settle", json={"answer": "approve"})
        (new_id,) = made.json()["new_ids"]
    async with api.http(tokens[0]) as person:
        assert "The key of person is blue." in (await person.get(f"/v1/memories/{new_id}")).text
