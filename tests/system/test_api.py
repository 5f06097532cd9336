"""The API over a real socket: what each verb does, and what nobody may do."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest
from structlog.testing import capture_logs

from newton.clock import SystemClock
from newton.db.pool import Database
from newton.heart import documents
from newton.heart.chunking import TextChunk
from newton.heart.documents import DocumentSource
from newton.ids import derive_agent_id
from newton.runtime.access.tokens import TokenScope
from newton.runtime.api.app import build_openapi
from tests.support import teller
from tests.system.served import Api, served

TOLD = '{"type":"fact","ref":"f1","content":"The kettle is blue.","at":"2026-03-01T09:00:00Z"}\n{"type":"x"}\n'
REDIS = {"description": "Use Redis for the cache", "confidence": 0.8, "reasons": [{"kind": "analysis", "text": "fast"}]}


# a name is free in each agent
BEGINS = {
    ("POST", "/v1/sessions/{session}/messages"): 201,
    ("POST", "/v1/sessions/{session}/turns"): 200,
    ("POST", "/v1/sessions/{session}/injections"): 201,
    ("PUT", "/v1/agents/{name}/model"): 403,
    ("PUT", "/v1/attributes/{name}"): 200,
}
BODIES = {
    "/v1/attributes/{name}": {"single": True},
    "/v1/entities/{name}/merge": {"into": "Ana"},
    "/v1/agents/{name}/model": {"model": None},
    "/v1/decisions/{decision_id}/thoughts": {"text": "x"},
    "/v1/decisions/{decision_id}/links": {"other_id": str(uuid4())},
    "/v1/decisions/{decision_id}/amendments": {"text": "x"},
    "/v1/decisions/{decision_id}/erase": {"reason": "x"},
    "/v1/procedures/{name}/outcomes": {"result": "success"},
    "/v1/procedures/{name}/dismiss": {"reason": "nobody does it so"},
    "/v1/memories/{memory_id}/supersede": {"content": "Ana lives in Bergen."},
    "/v1/censors/{censor_id}/relax": {"reason": "it never applies"},
    "/v1/conflicts/{memory_id}/settle": {"keep": "newer"},
    "/v1/moves/{memory_id}/settle": {"answer": "approve"},
    "/v1/memories/{memory_id}/outcome": {"outcome": "success"},
    "/v1/decisions/{decision_id}/review": {"outcome": "success"},
    "/v1/sessions/{session}/messages": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/sessions/{session}/turns": {"input": "hi"},
    "/v1/sessions/{session}/injections": {"text": "hi"},
    "/v1/sessions/{session}/brief": {"item_id": str(uuid4()), "status": "done"},
    "/v1/sessions/{session}/compact": {},
    "/v1/sessions/{session}/restore": {"compaction_id": str(uuid4())},
    "/v1/sessions/{session}/branches": {"branch": "other"},
    "/v1/memories/{memory_id}": {"importance": 1},
    "/v1/identity/lines/{line_id}": {"text": "Obey me"},
    "/v1/identity/lines/{line_id}/erase": {"reason": "it is mine now"},
    "/v1/agents/{name}/tokens": {"name": "thief"},
}
OF_THE_OPERATOR = ("/v1/agents/{name}", "/v1/mcp-servers/{name}")


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path, quote_without_model=True) as made:
        yield made


@pytest.fixture
async def ana(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with api.http(await api.token("ana")) as client:
        yield client


async def remembered(client: httpx2.AsyncClient, content: str = "Ana lives in Porto.", **more: str) -> str:
    answer = await client.post("/v1/memories", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["memory_id"]


async def test_a_fact_lives_over_http(ana: httpx2.AsyncClient) -> None:
    first = await remembered(ana, subject="Ana", attribute="lives in")
    found = (await ana.post("/v1/recall", json={"query": "where does Ana live?"})).json()["items"]
    assert [hit["memory_id"] for hit in found] == [first]
    assert (await ana.post(f"/v1/memories/{first}/confirm")).json()["counted"]
    answer = await ana.post(f"/v1/memories/{first}/supersede", json={"content": "Ana lives in Bergen."})
    second = answer.json()["superseded_by"]
    known = (await ana.get(f"/v1/memories/{first}")).json()
    assert (known["full_text"], known["state"]) == ("Ana lives in Porto.", "SUPERSEDED")
    assert known["changes"][-1]["event"] == "superseded"
    assert (await ana.post(f"/v1/memories/{second}/retract")).status_code == 200
    assert (await ana.get(f"/v1/memories/{first}")).json()["state"] != "SUPERSEDED"


async def test_forgetting_wants_to_be_confirmed(ana: httpx2.AsyncClient) -> None:
    first = await remembered(ana)
    assert (await ana.delete(f"/v1/memories/{first}", params={"confirm": "forget"})).status_code == 422
    token = (await ana.delete(f"/v1/memories/{first}")).json()["token"]
    assert (await ana.get(f"/v1/memories/{first}")).status_code == 200, "it was a preview"
    gone = await ana.delete(f"/v1/memories/{first}", params={"token": token})
    assert first in gone.json()["items"]
    assert (await ana.get(f"/v1/memories/{first}")).status_code == 404


async def test_a_context_is_answered_explained_and_made_again(ana: httpx2.AsyncClient) -> None:
    first = await remembered(ana)
    made = (await ana.post("/v1/context", json={"input": "Where does Ana live?", "max_tokens": 300})).json()
    # the contract of POST /v1/context
    assert {"bundle_id", "text", "tokens", "frame", "layers", "items", "dropped", "timings_ms"} <= made.keys()
    (item,) = made["items"]
    kept = {"memory_id", "kind", "layer", "detail", "tokens", "score", "features", "refs", "text"}
    assert kept <= item.keys()
    assert item["memory_id"] == first
    assert all({"share", "ceiling", "used"} == layer.keys() for layer in made["layers"].values())
    assert made["tokens"] <= 300
    bundle = f"/v1/bundles/{made['bundle_id']}"
    assert (await ana.get(bundle)).json()["text"] == made["text"]
    assert (await ana.post(f"{bundle}/replay")).json()["identical"] is True


async def test_a_repeated_request_gets_the_same_context_until_something_is_written(ana: httpx2.AsyncClient) -> None:
    # S001-32: the use of the memories is recorded with the context, so it does not end its life
    await remembered(ana)
    asked = {"input": "Where does Ana live?", "max_tokens": 500}
    first, second = [(await ana.post("/v1/context", json=asked)).json()["bundle_id"] for _ in range(2)]
    assert first == second
    await ana.post("/v1/memories", json={"content": "Ana moved to Lisbon."})
    assert (await ana.post("/v1/context", json=asked)).json()["bundle_id"] != first


async def test_lists_come_in_pages(ana: httpx2.AsyncClient) -> None:
    said = [{"role": "user", "content": f"line {n}"} for n in range(5)]
    await ana.post("/v1/sessions/talk/messages", json={"messages": said})
    for n in range(5):
        await ana.post("/v1/context", json={"input": f"what was line {n}?"})
        await ana.post("/v1/decisions", json={**REDIS, "description": f"Use Redis for cache number {n}"})
        await ana.post("/v1/sessions", json={"session": f"s{n}"})
    for path, many in (("sessions/talk/messages", 5), ("bundles", 5), ("decisions", 5), ("sessions", 6)):
        whole = (await ana.get(f"/v1/{path}")).json()
        parts: list[object] = []
        cursor: str | None = None
        while cursor is not None or not parts:
            asked: dict[str, str | int] = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = (await ana.get(f"/v1/{path}", params=asked)).json()
            parts, cursor = [*parts, *page["items"]], page["next"]
        assert (parts, len(parts)) == (whole["items"], many), path
    assert (await ana.get("/v1/bundles", params={"cursor": "???"})).status_code == 422


async def test_a_conversation_is_kept_shown_and_branched(ana: httpx2.AsyncClient) -> None:
    said = [{"role": "user", "content": "hello", "name": "Ana"}, {"role": "assistant", "content": "yes?"}]
    talk = "/v1/sessions/talk"
    stored = (await ana.post(f"{talk}/messages", json={"messages": said})).json()
    assert stored == {"positions": [0, 1], "events": 0, "redacted": {}, "refused": [], "wills": []}
    view = (await ana.get(f"{talk}/view")).json()
    assert [one["content"] for one in view["messages"]] == ["hello", "yes?"]
    assert (await ana.post(f"{talk}/branches", json={"branch": "other", "from_position": 1})).status_code == 201
    assert len((await ana.get("/v1/sessions/other/messages")).json()["items"]) == 2
    assert (await ana.get(f"{talk}/compactions")).json() == {"items": []}
    assert (await ana.post(f"{talk}/restore", json={"compaction_id": str(uuid4())})).status_code == 404
    lone = {"messages": [{"role": "user", "content": "", "answers": "x"}]}
    assert (await ana.post(f"{talk}/messages", json=lone)).status_code == 422


async def test_a_decision_is_recorded_and_judged(ana: httpx2.AsyncClient) -> None:
    looked = (await ana.post("/v1/decisions/preview", json={**REDIS, "reasons": []})).json()
    assert looked["blocked"] is True
    refused = await ana.post("/v1/decisions", json={**REDIS, "reasons": []})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:newton:guardrail_blocked")
    made = (await ana.post("/v1/decisions", json=REDIS)).json()
    one = f"/v1/decisions/{made['decision_id']}"
    assert (await ana.get(one)).json()["description"] == REDIS["description"]
    assert (await ana.post(f"{one}/review", json={"outcome": "success"})).status_code == 200
    assert (await ana.post(f"{one}/review", json={"outcome": "failure"})).status_code == 409
    assert (await ana.get("/v1/calibration")).json()["n"] == 1
    assert (await ana.get("/v1/calibration", params={"category": "nothing"})).status_code == 422
    names = {rule["name"] for rule in (await ana.get("/v1/guardrails")).json()["items"]}
    checked = (await ana.post("/v1/guardrails/check", json={**REDIS, "reasons": []})).json()
    assert {rule["name"] for rule in checked["guardrails"] if rule["verdict"] == "blocked"} <= names
    assert "debug" in {frame["name"] for frame in (await ana.get("/v1/frames")).json()["items"]}


async def test_lines_are_imported_once(ana: httpx2.AsyncClient) -> None:
    nd = {"content-type": "application/x-ndjson"}
    first = (await ana.post("/v1/import", content=TOLD, headers=nd)).json()
    again = (await ana.post("/v1/import", content=TOLD, headers=nd)).json()
    assert (first["new"], [rejected["place"] for rejected in first["rejected"]]) == (1, ["line 2"])
    assert (again["new"], again["unchanged"]) == (0, 1)


DOORS = (
    *("GET /v1/frames", "POST /v1/memories", "POST /v1/chat/completions", "GET /v1/models", "POST /mcp"),
    *("GET /v1/events", "GET /v1/export"),
)


async def test_only_a_token_in_force_opens(api: Api) -> None:
    # S9
    async with httpx2.AsyncClient(base_url=api.url) as http:
        for headers in await api.strange("ana"):
            due = int(headers.pop("due"))
            for method, _, path in (door.partition(" ") for door in DOORS):
                answer = await http.request(method, path, headers=headers)
                assert answer.status_code == due, (path, headers)
                assert (answer.headers.get("www-authenticate") == 'Bearer realm="newton"') == (due == 401)
        in_force = await api.token("ana", "read", expires_at=SystemClock().now() + timedelta(hours=1))
        assert (await http.get("/v1/frames", params={"token": in_force, "access_token": in_force})).status_code == 401
        assert (await http.get("/v1/frames", headers={"Authorization": f"Bearer {in_force}"})).status_code == 200


@pytest.mark.parametrize(
    ("scope", "remember", "forget"), [("read", 403, 403), ("write", 201, 403), ("admin", 201, 404)]
)
async def test_a_token_does_what_its_scope_says(api: Api, scope: TokenScope, remember: int, forget: int) -> None:
    async with api.http(await api.token("ana", scope)) as http:
        assert (await http.post("/v1/recall", json={"query": "kettle"})).status_code == 200
        assert (await http.post("/v1/memories", json={"content": "The kettle is blue."})).status_code == remember
        gone = await http.delete(f"/v1/memories/{uuid4()}")
        assert gone.status_code == forget
        assert (await http.get("/metrics")).status_code == 403


async def documented(api: Api) -> str:
    """The id of a document of ana."""
    owner = derive_agent_id("ana")
    source = DocumentSource(ref="/kettle.md", title="Kettles", format="markdown")
    async with api.db.transaction(owner) as tx:
        await documents.replace_passages(tx, source, [TextChunk("Use", "Fill it with water.", 6)], ctx=teller(owner))
        (document,) = await documents.list_documents(tx, agent_id=owner)
    return str(document.document_id)


# What a route takes in its query.
QUERIES = {
    ("GET", "/v1/bundles/{bundle_id}/explain"): {"item": "1"},
}


async def test_nobody_reaches_what_is_another_agents(api: Api, ana: httpx2.AsyncClient) -> None:
    # S1, S9
    made = {"memory_id": await remembered(ana), "session": "talk", "name": "nothing", "line_id": str(uuid4())}
    made["decision_id"] = (await ana.post("/v1/decisions", json=REDIS)).json()["decision_id"]
    made["bundle_id"] = (await ana.post("/v1/context", json={"input": "Where does Ana live?"})).json()["bundle_id"]
    made["response_id"] = (await ana.post("/v1/responses", json={"input": "Where does Ana live?"})).json()["id"]
    made["injection_id"] = str(uuid4())
    made["turn"] = "latest"
    made |= {
        "other_id": made["bundle_id"],
        "model": "ana",
        "token_id": "laptop",
        "permission_id": str(uuid4()),
        "document_id": await documented(api),
    }
    await ana.post("/v1/censors", json={"trigger": "sell the boat", "reason": "it is not ours"})
    made["censor_id"] = (await ana.get("/v1/censors")).json()["items"][0]["memory_id"]
    await ana.post("/v1/sessions/talk/messages", json={"messages": [{"role": "user", "content": "hi"}]})
    before = (await ana.get("/v1/export")).text
    paths = build_openapi(api.app)["paths"]
    named = [(way.upper(), path) for path, ways in paths.items() if "{" in path for way in ways]
    assert set(named) >= set(BEGINS) and len(named) >= 18
    async with api.http(await api.token("ben")) as ben:
        for way, path in sorted(named, key=BEGINS.__contains__):
            where, body = path.format_map(made), BODIES.get(path) if way in ("POST", "PATCH", "PUT") else None
            answer = await ben.request(way, where, params=QUERIES.get((way, path)), json=body)
            refusal = 403 if path.startswith(OF_THE_OPERATOR) else 404
            assert answer.status_code == BEGINS.get((way, path), refusal), (way, where, answer.text)
        found = (await ben.post("/v1/recall", json={"query": "where does Ana live?"})).json()["items"]
        assert not [one for one in found if one["memory_id"] in before]  # he finds what he has said himself
        assert (await ben.get("/v1/decisions")).json()["items"] == []
        assert (await ben.get("/v1/frames", headers={"X-Newton-Agent": "ana"})).status_code == 403
    same = [line for line in (await ana.get("/v1/export")).text.splitlines() if made["memory_id"] in line]
    assert same == [line for line in before.splitlines() if made["memory_id"] in line]


async def test_the_log_and_the_figures_hold_no_words(api: Api) -> None:
    # S002-22
    token = await api.token("ana")
    with capture_logs() as noted:
        async with api.http(token) as http:
            await remembered(http, "The wine is in the cellar.")
            await http.post("/v1/sessions/secret-plan/messages", json={"messages": [{"role": "user", "content": "x"}]})
            await http.get("/v1/frames", params={"wine": "cellar"})
            await http.get("/v1/memories/wine")
            await http.get(f"/v1/memories/{uuid4()}")
    assert [(line["event"], line["route"], line["status"], line.get("error")) for line in noted] == [
        ("request_answered", "/v1/memories", 201, None),
        ("request_answered", "/v1/sessions/{session}/messages", 201, None),
        ("request_answered", "/v1/frames", 422, "invalid_input"),
        ("request_answered", "/v1/memories/{memory_id}", 422, "invalid_input"),
        ("request_answered", "/v1/memories/{memory_id}", 404, "not_found"),
    ]
    async with api.http() as http:
        page = (await http.get("/metrics")).text
    assert 'newton_http_requests_total{method="POST",route="/v1/memories",status="201"} 1.0' in page
    assert 'newton_agent_quality{agent="ana",metric="memories a day",unit="count"}' in page
    assert 'newton_llm_tokens_today{agent="ana"} 0.0' in page
    said = f"{noted}{page}"
    assert not [word for word in ("wine", "cellar", "secret-plan", token) if word in said]
    assert all(line["agent_id"] == str(derive_agent_id("ana")) for line in noted)
