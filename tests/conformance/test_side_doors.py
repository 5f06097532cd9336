"""What a person said is not displaced by another way than the operations that ask whether it may be."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from newton.client import ApiError
from newton.clock import SystemClock
from newton.db.pool import Database
from newton.heart.censors import CensorRule
from newton.heart.speakers import Speaker
from newton.operations.declaration import load_operations
from tests.conformance.doors import DoorCall, call_http
from tests.conformance.test_doors import fill_ids, read_example
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


def _list_bodies(path: str) -> Sequence[Any]:
    texts = ("The alarm has a code.", "The alarm has no code.")
    return [f"# Rules\n\n{one}\n" if path == "documents" else {"text": one} for one in texts]


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


@pytest.mark.parametrize("door", ["remember", "message", "import", "supersede", "confirm"])
async def test_what_a_model_stated_and_retracted_is_in_force_once_a_person_says_it(api: Api, door: str) -> None:
    """A model cannot make void what a person says later, through whichever operation. S002-16"""
    text = "Ana works at the quarry."
    async with (
        api.http(await api.token("ana", speaker="person")) as person,
        api.http(await api.token("ana", speaker="model")) as model,
    ):
        known = (await send(model, "POST", "/v1/memories", content=text, source="own"))["memory_id"]
        await send(model, "POST", f"/v1/memories/{known}/retract")
        assert (await model.post("/v1/memories", json={"content": text, "source": "own"})).status_code == 409
        assert await read_state(person, known) == "INACTIVE"
        if door == "message":
            said = [{"role": "user", "content": text}]
            await send(person, "POST", "/v1/sessions/talk/messages", messages=said)
        elif door == "import":
            line = {"type": "fact", "ref": "f1", "content": text, "at": SystemClock().now().isoformat()}
            (await person.post("/v1/import", content=json.dumps(line) + "\n")).raise_for_status()
        elif door == "supersede":
            other = await send(person, "POST", "/v1/memories", content="Ana works at the mine.")
            await send(person, "POST", f"/v1/memories/{other['memory_id']}/supersede", content=text)
        elif door == "confirm":
            await send(person, "POST", f"/v1/memories/{known}/confirm")
        else:
            await send(person, "POST", "/v1/memories", content=text)
        assert await read_state(person, known) == "CONFIRMED"


async def test_a_model_replaces_no_artifact_and_no_outcome_of_a_person(api: Api) -> None:
    """The text under a name of a person stays theirs, and so does what they said of an episode. S002-6"""
    stored = {"session": "s", "name": "plan.md"}
    async with (
        api.http(await api.token("ana", speaker="person")) as person,
        api.http(await api.token("ana", speaker="model")) as model,
    ):
        await send(person, "POST", "/v1/artifacts", **stored, content="Close the sluice.")
        refused = await model.post("/v1/artifacts", json={**stored, "content": "Open the sluice."})
        assert (refused.status_code, "another name" in refused.json()["hint"]) == (403, True)
        await send(model, "POST", "/v1/artifacts", session="s", name="mine.md", content="Open the sluice.")
        await send(person, "POST", "/v1/artifacts", session="s", name="mine.md", content="Close it.")
        assert (await person.get("/v1/artifacts/text", params=stored)).json()["text"] == "Close the sluice."
        newton = await api.app.state.agents.get("ana")
        episode = await newton.memories("told").remember_episode("We rowed to the island.", title="Rowing")
        said = [(model, "failure", "failure"), (model, "success", "failure")]
        for one, outcome, kept in [*said, (person, "success", "success"), (model, "failure", "success")]:
            set_to = await send(one, "POST", f"/v1/memories/{episode.memory_id}/outcome", outcome=outcome)
            assert set_to["outcome"] == kept


@pytest.mark.parametrize("speaker", ["app", "model"])
async def test_a_blocking_censor_stops_reasons_and_keys_too(api: Api, speaker: Speaker) -> None:
    """Whatever text of a call is stored or shown passes the censors: also why something is deleted. S002-19"""
    await api.token("ana")
    newton = await api.app.state.agents.get("ana")
    await newton.censors("told").add(CensorRule(trigger="open the sluice", reason="villages", action="block"))
    token, forbidden = await api.token("ana", speaker=speaker), "We open the sluice."
    operations = [one for one in load_operations().values() if one.effect != "reads" and "reason" in one.parameters]
    calls = [(one, {**fill_ids(one, read_example(one), {}), "reason": forbidden}) for one in operations]
    # not only a preview
    calls = [(one, {**given, **({"token": "x"} if "token" in one.parameters else {})}) for one, given in calls]
    put = load_operations()["put_item"]
    values: list[Any] = [{forbidden: "x"}, {"text": forbidden}, {"deep": [{forbidden: 1}]}]
    calls += [(put, {"namespace": ["prefs"], "key": "Ana", "value": one}) for one in values]
    codes = {one.name: (await call_http(DoorCall(api, "ana", token, one, given))).code for one, given in calls}
    assert set(codes.values()) == {"censor_blocked"}, codes
    assert (await call_http(DoorCall(api, "ana", token, put, {**calls[-1][1], "value": {"text": "shut"}}))).code is None


async def test_a_turn_of_a_model_states_no_rule_and_fails_in_no_part(api: Api) -> None:
    # S002-19
    async with api.http(await api.token("ana", speaker="model")) as model:
        turn = await model.post("/v1/sessions/talk/turns", json={"input": "From now on always answer in verse."})
    assert turn.is_success and "rules of the user" not in turn.text
    identity = (await api.app.state.agents.get("ana")).identity("told")
    assert not (await identity.get()).tenets and len(await identity.list_proposals()) == 1


@pytest.mark.parametrize("speaker", ["person", "app", "model"])
@pytest.mark.parametrize("text", [CORE, SAFE])
async def test_a_fact_is_not_superseded_by_itself(api: Api, speaker: Speaker, text: str) -> None:
    # S002-16
    async with (
        api.http(await api.token("ana", speaker="person")) as person,
        api.http(await api.token("ana", speaker=speaker)) as http,
    ):
        memory_id = (await state_core_facts(person))[text]
        before = await read_state(person, memory_id)
        for at in ({}, {"at": "2020-01-01T00:00:00Z"}):
            answer = await http.post(f"/v1/memories/{memory_id}/supersede", json={"content": text, **at})
            assert answer.status_code == 409, answer.text
        assert await read_state(person, memory_id) == before


async def test_a_model_replaces_no_document_or_item_of_a_person(api: Api) -> None:
    """Under the name of a person's document or item, a model stores nothing; under another one it does. S002-16"""
    token = await api.token("ana", speaker="model")
    async with api.http(await api.token("ana", speaker="person")) as person, api.http(token) as model:
        document, item = {"name": "rules.md", "ref": "rules"}, {"namespace": ["prefs"], "key": "Ana", "index": ["text"]}
        for path, method, given in (("documents", "POST", document), ("items", "PUT", item)):
            texts = [{"content" if path == "documents" else "value": one} for one in _list_bodies(path)]
            await send(person, method, f"/v1/{path}", **given, **texts[0])
            refused = await model.request(method, f"/v1/{path}", json={**given, **texts[1]})
            assert (refused.status_code, "another" in refused.json()["hint"]) == (403, True)
            other = {"ref": "mine"} if path == "documents" else {"key": "mine"}
            await send(model, method, f"/v1/{path}", **{**given, **other}, **texts[1])
            await send(person, method, f"/v1/{path}", **{**given, **other}, **texts[0])
        async with api.client(token) as client:
            with pytest.raises(ApiError, match="higher trust"):
                await client.call_tool("ingest_document", {"name": "rules", "content": "# B\n\nNo code.\n"})
        found = (await person.get("/v1/documents/rules")).json()["passages"]
        assert [(one["text"], one["state"], one["trust"]) for one in found] == [
            ("The alarm has a code.", "ACTIVE", "user")
        ]


async def read_trusts(api: Api, agent: str = "ana") -> Mapping[str, str]:
    """The trust of each stored message of a user."""
    newton = await api.app.state.agents.get(agent)
    async with newton.scope.transaction() as tx:
        rows = await tx.fetch("select summary, trust from memory.memories where kind = 'exchange' order by position")
    said = [(row["summary"].partition("User: ")[2], row["trust"]) for row in rows]
    return {text: trust for text, trust in said if text}


async def test_a_model_takes_no_idempotency_key_of_a_person(api: Api) -> None:
    """A key that a model used first makes no words of a person vanish."""
    model_token, person_token = [await api.token("ana", speaker=one) for one in ("model", "person")]
    headers = {"Idempotency-Key": "k1"}
    async with api.http(model_token, **headers) as model, api.http(person_token, **headers) as person:
        stated = {"content": "Ana's boat is red.", "source": "own"}
        by_model, by_person = [await one.post("/v1/memories", json=stated) for one in (model, person)]
        assert (by_model.status_code, by_person.status_code) == (201, 201)
        assert "Idempotency-Replayed" not in by_person.headers
        assert (await person.post("/v1/memories", json=stated)).headers["Idempotency-Replayed"] == "true"
        other = await model.post("/v1/memories", json={**stated, "content": "Ana's mill is red."})
        assert other.json()["detail"] == "This Idempotency-Key was used with another request."  # by the model


DECIDED: Mapping[str, Any] = {"confidence": 0.7, "reasons": [{"kind": "analysis", "text": "it is near"}]}
# What a door takes with a ref of the caller, and the answer that says that it is stored.
NAMED: Mapping[str, tuple[str, Callable[[str, str], Mapping[str, Any]], Mapping[str, Any]]] = {
    "message": (
        "/v1/sessions/s/messages",
        lambda ref, text: {"messages": [{"role": "user", "content": text, "ref": ref}]},
        {"positions": [1], "events": 0},
    ),
    "reply": (
        "/v1/sessions/s/messages",
        lambda ref, text: {"messages": [{"role": "assistant", "content": text, "ref": ref}]},
        {"positions": [1], "events": 0},
    ),
    "unnamed message": (
        "/v1/sessions/s/messages",
        lambda ref, text: {"messages": [{"role": "user", "content": text, "at": "2026-03-01T09:00:00Z"}]},
        {"positions": [1], "events": 0},
    ),
    "event": (
        "/v1/sessions/s/messages",
        lambda ref, text: {"events": [{"ref": ref, "event_type": "shell_exec", "payload": {"command": text}}]},
        {"positions": [], "events": 1},
    ),
    "decision": (
        "/v1/decisions",
        lambda ref, text: {"description": text, **DECIDED, "ref": ref},
        {"is_new": True},
    ),
}


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("text", ["I am at home.", "I am at the mill."])
async def test_what_a_model_names_blocks_no_write_of_a_person(api: Api, kind: str, text: str) -> None:
    """With other content and with the same, under any ref; each of the two stays what it is when sent again. S002-16"""
    path, build, stored = NAMED[kind]
    tokens = [await api.token("ana", speaker=one) for one in ("model", "person")]
    async with api.http(tokens[0]) as model, api.http(tokens[1]) as person:
        await send(model, "POST", path, **build("m1", "I am at home."))
        answer = await send(person, "POST", path, **build("m1", text))
        assert stored.items() <= answer.items()
        other = await person.post(path, json=build("model m1", text))  # as the model's is kept
        assert other.is_success, other.text
        for one in (model, person):
            again = await send(one, "POST", path, **build("m1", "I am at home." if one is model else text))
            assert not (again.get("positions") or again.get("events") or again.get("is_new"))


async def test_a_decision_that_a_model_names_over_mcp_blocks_no_decision_of_a_person(api: Api) -> None:
    # S002-16
    given = {**DECIDED, "ref": "d1"}
    token = await api.token("ana", speaker="person")  # over MCP a model speaks, whatever the token
    async with api.client(token) as model, api.http(token) as person:
        first = await model.call_tool("decide", {**given, "description": "Send the crate by rail"})
        decided = await send(person, "POST", "/v1/decisions", **given, description="Keep the crate")
        assert decided["is_new"] and decided["decision_id"] != first["decision_id"]
        again = await model.call_tool("decide", {**given, "description": "Send the crate by rail"})
        assert (again["decision_id"], again["is_new"]) == (first["decision_id"], False)


async def test_a_model_that_repeats_a_person_confirms_nothing(api: Api) -> None:
    """However often, and after a newer fact: the fact is known, and its state and place in time stay. S002-16"""
    token = await api.token("ana", speaker="model")
    stated = {"content": "Ana lives in Porto.", "subject": "Ana", "attribute": "lives in", "source": "own"}
    newer = {**stated, "content": "Ana lives in Vienna."}
    async with api.http(token) as model, api.http(await api.token("ana", speaker="person")) as person:
        first = await send(person, "POST", "/v1/memories", **stated)
        for session in ("a", "b", "c"):
            told = await send(model, "POST", "/v1/memories", **stated, session=session)
            assert told["status"] == "unchanged"
        found = (await person.get(f"/v1/memories/{first['memory_id']}")).json()
        assert (found["state"], found["confirmations"]) == ("NEW", 0)
        second = await send(person, "POST", "/v1/memories", **newer)
        await send(model, "POST", "/v1/memories", **stated)
        assert await read_state(person, first["memory_id"]) == "SUPERSEDED"
        assert (await send(person, "POST", "/v1/memories", **newer, session="d"))["status"] == "confirmed"
        assert await read_state(person, second["memory_id"]) == "CONFIRMED"
