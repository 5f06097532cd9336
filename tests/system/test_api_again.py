"""What comes again is done once; and who listens misses nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import asyncpg
import httpx2
import pytest

from newton import Client
from newton.agent import events as agent_events
from newton.agent.services.memories import FactDraft
from newton.brain.calibration import snapshots
from newton.brain.hash_chain import ChainHead, ChainHeadFiles
from newton.client import ApiError
from newton.clock import SystemClock
from newton.content.skills import SkillFile, SkillSet
from newton.db.pool import Database
from newton.dialogue.messages import Message
from newton.errors import DatabaseError
from newton.heart.censors import CensorRule
from newton.ids import derive_agent_id, new_id
from newton.runtime.access import tokens
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api import idempotency as kept
from newton.runtime.api.problems import error_response
from newton.runtime.api.routes import events
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.jobs import claims, queue
from newton.runtime.jobs.queue import JobOutcome
from newton.runtime.tools.tool_registry import run_tool
from newton.runtime.wiring import AgentServices
from tests.endpoint import Wire, endpoint
from tests.support import NOON, has_code, until
from tests.system.cutting import cutting
from tests.system.served import Api, each_once, effects, served

REASONS = [{"kind": "analysis", "text": "fast"}]
DECISION = {"description": "Use Redis for the cache", "confidence": 0.8, "reasons": REASONS}
CUT = 30


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path, quote_without_model=True) as made:
        yield made


async def test_a_request_that_comes_again_is_answered_again_and_done_once(api: Api) -> None:
    # R4
    async with api.http(await api.token("ana"), **{"Idempotency-Key": "k1"}) as http:
        answers = [await http.post("/v1/tasks", json={"goal": "ship", "session": "work"}) for _ in range(3)]
        other = await http.post("/v1/tasks", json={"goal": "test", "session": "work"})
        elsewhere = await http.post("/v1/tasks/pop", json={"goal": "ship", "session": "work"})
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.text for answer in answers}) == 1
    assert [answer.headers.get("Idempotency-Replayed") for answer in answers] == [None, "true", "true"]
    assert await api.rows("ana", "dialogue.tasks") == 1
    assert (other.status_code, elsewhere.status_code) == (409, 422)
    async with api.http(await api.token("ben"), **{"Idempotency-Key": "k1"}) as http:
        assert (await http.post("/v1/tasks", json={"goal": "test", "session": "w"})).status_code == 201


async def test_what_failed_is_done_when_it_comes_again(api: Api) -> None:
    async with api.http(await api.token("ana"), **{"Idempotency-Key": "k1"}) as http:
        assert (await http.post("/v1/tasks/pop", json={"result": "x"})).status_code == 404
        await http.post("/v1/tasks", json={"goal": "ship", "session": "s"}, headers={"Idempotency-Key": "k2"})
        assert (await http.post("/v1/tasks/pop", json={"result": "x"})).status_code == 200


async def test_of_many_at_once_with_one_key_one_does_it(api: Api) -> None:
    # R4
    async with api.http(await api.token("ana"), **{"Idempotency-Key": "k1"}) as http:
        asked = [http.post("/v1/tasks", json={"goal": "ship", "session": "work"}) for _ in range(10)]
        answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 409)
    assert await api.rows("ana", "dialogue.tasks") == 1


@pytest.mark.fault
async def test_a_reply_that_was_cut_after_the_effect_is_fetched_again(api: Api) -> None:
    # R4
    token = await api.token("ana")
    async with cutting(api.url) as (url, proxy), api.client(token, url=url) as client:
        await each_once(client, CUT)
    assert len(proxy.cut) == CUT
    assert await effects(api) == [CUT // 3, CUT // 3, CUT // 3, CUT]


PLACES: tuple[tuple[object, str], ...] = (
    (snapshots, "take_snapshot"),
    (kept, "save_response"),
    (queue, "enqueue_if_idle"),
    (ChainHeadFiles, "save"),
)


@pytest.mark.fault
@pytest.mark.parametrize(("owner", "name"), PLACES, ids=[name for _, name in PLACES])
async def test_wherever_a_decision_or_its_review_dies_the_same_request_does_it_once(
    api: Api, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    # R4, R13
    async with api.http(await api.token("ana")) as http:
        first = (await http.post("/v1/decisions", json={**DECISION, "description": "Use PostgreSQL"})).json()
        review = f"/v1/decisions/{first['decision_id']}/review"
        asked = [
            ("/v1/decisions", {**DECISION, "supersedes": [first["decision_id"]]}),
            (review, {"outcome": "success"}),
        ]
        for path, body in reversed(asked):
            headers = {"Idempotency-Key": path}
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, _dies)
                assert (await http.post(path, json=body, headers=headers)).status_code >= 500
            answers = [await http.post(path, json=body, headers=headers) for _ in range(2)]
            assert [answer.is_success for answer in answers] == [True, True], answers[0].text
            assert answers[0].text == answers[1].text
            assert answers[0].json().get("new", True) is True
    told = ["recorded", "reviewed", "superseded", "recorded"]
    async with api.db.transaction(derive_agent_id("ana")) as tx:
        assert [one.type for one in await agent_events.read_after(tx, 0, agent_id=derive_agent_id("ana"))] == [
            f"decision.{what}" for what in told
        ]
    assert await api.rows("ana", "brain.decisions") == 2
    minds: AgentRegistry = api.app.state.agents
    assert isinstance(await (await minds.get("ana")).decisions("cli").verify_chain(), ChainHead), (
        "no end was noted that was undone"
    )


def _dies(*given: object, **named: object) -> None:
    raise ConnectionResetError


async def listened(client: Client, many: int, *, after: int | None = None) -> list[int]:
    numbers: list[int] = []
    async for told in client.events(after=after):
        numbers.append(told.event_id)
        if len(numbers) == many:
            break
    return numbers


@pytest.mark.slow
async def test_who_listens_hears_all_in_order_and_goes_on_after_a_restart(db: Database, tmp_path: Path) -> None:
    # R13
    async with served(db, tmp_path, quote_without_model=True) as api:
        token = await api.token("ana")
        async with api.client(token) as client, api.client(await api.token("ben")) as ben:
            await client.remember("The kettle is blue.")
            await ben.remember("Ben's kettle is red.")
            hearing = asyncio.create_task(listened(client, 20, after=1))
            await asyncio.gather(*(client.remember(f"There are {n} cups.") for n in range(20)))
            assert await hearing == list(range(2, 22))
    async with served(db, tmp_path, quote_without_model=True) as api, api.client(token) as client:
        await client.remember("The cup is white.")
        assert await listened(client, 3, after=19) == [20, 21, 22]


async def test_who_listens_hears_of_every_door_and_of_other_processes_at_once(
    api: Api, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R13: nobody looks again by themselves, so what is heard was said by the database
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 600)
    token, heard = await api.token("ana"), list[tuple[str, object]]()
    minds: AgentRegistry = api.app.state.agents
    newton, elsewhere = await minds.get("ana"), await Database.open(dsn, size=3)

    async def hear(client: Client) -> None:
        async for told in client.events(after=0):
            heard.append((told.type, told.data))
            if told.type == "job.completed":
                return

    try:
        async with api.client(token) as client:
            hearing = asyncio.create_task(hear(client))
            await _by_every_door(replace(newton, scope=replace(newton.scope, db=elsewhere)), api, token)
            async with asyncio.timeout(60):
                await hearing
    finally:
        await elsewhere.close()
    assert [type_ for type_, _ in heard] == EVENTS
    assert not any("kettle" in str(payload) or "trip" in str(payload) for _, payload in heard)


EVENTS = [
    *("memory.remembered", "memory.superseded", "memory.retracted", "memory.forgotten"),
    *("attribute.declared", "censor.added", "censor.false_positive", "procedure.used", "procedure.outcome_recorded"),
    *("identity.added", "session.created", "task.pushed", "task.failed", "task.pushed"),
    *("session.created", "session.appended", "session.closed"),
    *("memory.remembered", "decision.recorded"),
    *("session.created", "session.appended", "turn.completed", "session.branched", "turn.completed"),
    *("import.batch_committed", "import.completed", "job.completed"),
]


async def _by_every_door(newton: AgentServices, api: Api, token: str) -> None:
    await _curated(newton)
    await _judged(newton)
    await newton.identity("cli").add("preference", "Speak of the kettle.")
    await _worked(newton)
    await run_tool(newton, "remember", {"content": "The cup is white."})
    await run_tool(newton, "decide", DECISION)
    async with api.http(token) as http:
        for asked in ("Where is the kettle?", "Is the kettle red?"):  # the second one edits what was sent before
            said = [("user", "On the trip?"), ("assistant", "On the trip."), ("user", asked)]
            turn = {"messages": [{"role": role, "content": words} for role, words in said]}
            assert (await http.post("/v1/chat/completions", json=turn)).status_code == 200
        line = '{"type":"fact","content":"The trip is in May.","at":"2026-03-01T09:00:00Z"}\n'
        assert (await http.post("/v1/import", content=line)).json()["new"] == 1
    async with newton.scope.transaction() as tx:
        await queue.enqueue(tx, "grow", agent_id=newton.scope.agent_id)
    lease = timedelta(seconds=10)
    (claimed,) = await claims.claim_runs(newton.scope.db, "here", ["grow"], limit=1, lease=lease)
    await queue.finish(newton.scope.db, claimed, JobOutcome(reason="a week is over", result={"strengths": 1}))


async def _curated(newton: AgentServices) -> None:
    kept = await newton.memories("cli").remember(FactDraft(content="The kettle is blue.", subject="kettle"))
    curation = newton.curation("chat")
    new = await curation.supersede(kept.memory_id.hex, "The kettle is red.")
    await curation.retract(new.hex)
    await curation.forget([kept.memory_id.hex, new.hex], include_derived=False, reason="a test")
    await curation.set_cardinality("colour of the kettle", single_valued=True)


async def _judged(newton: AgentServices) -> None:
    gate = newton.action_gate("cli")
    await newton.censors("cli").add(CensorRule(trigger="paint the kettle", reason="it is hot", match_mode="phrase"))
    (met,) = (await gate.check("Paint the kettle now.", "input")).matches
    await newton.censors("cli").report_false_positive(met.memory_id.hex)
    practice, skill = newton.procedures("cli"), SkillFile(name="kettle", description="Use it.", core=("Boil water.",))
    await practice.sync_from_disk(SkillSet({skill.name: skill}))
    await practice.record_use(skill.name, None)
    await practice.record_outcome(skill.name, "success")


async def _worked(newton: AgentServices) -> None:
    session_id = await newton.sessions("cli").begin("trip")
    stack = newton.tasks("cli").for_session(session_id)
    await stack.push("plan the trip")
    await stack.fail("no trip", instead="stay")
    conversations = newton.sessions("cli")
    await conversations.append("trip back", [Message(role="user", content="We are home again.", said_at=NOON)])
    await newton.sessions("chat").close(await conversations.begin("trip back"))


async def test_a_connection_that_told_of_events_and_is_lost_is_made_anew(
    api: Api, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R13
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 600)
    monkeypatch.setattr(events, "RECONNECT_SECONDS", 0)
    owner = await asyncpg.connect(dsn)
    try:
        async with api.client(await api.token("ana")) as client:
            hearing = asyncio.create_task(listened(client, 2, after=0))
            await until(lambda: owner.fetchval(ENDED))
            await client.remember("The kettle is blue.")
            await until(lambda: owner.fetchval(ENDED))
            await client.remember("The cup is white.")
            async with asyncio.timeout(60):
                assert await hearing == [1, 2]
    finally:
        await owner.close()


ENDED = """
select pg_terminate_backend(pid) from pg_stat_activity where query ilike 'listen%' and datname = current_database()
"""


async def test_listening_ends_with_the_token_and_with_the_daemon(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path, quote_without_model=True) as api:
        for end in (_revoked, _closed):
            token = await api.token("ana", name="phone")
            async with api.http(token) as http, http.stream("GET", "/v1/events") as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == ": newton"
                await end(api)
                assert [line async for line in lines] == [""]


async def _revoked(api: Api) -> None:
    owner = derive_agent_id("ana")
    async with api.db.transaction(owner) as tx:
        await tokens.revoke_token(tx, "phone", agent_id=owner, now=SystemClock().now())
    api.app.state.broadcaster.notify(owner)


async def _closed(api: Api) -> None:
    api.app.state.broadcaster.close()


async def test_the_client_speaks_every_verb(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(scheme, "http://127.0.0.1:1")  # which would be given the token
    async with api.client(await api.token("ana")) as client:
        first = (await client.remember("Ana lives in Porto.", subject="Ana", confidence=0.9))["memory_id"]
        assert (await client.confirm(first))["counted"]
        assert (await client.expand(first))["full_text"] == "Ana lives in Porto."
        assert [hit["memory_id"] for hit in (await client.recall("where does Ana live?"))["items"]] == [first]
        assert (await client.context("where does Ana live?", max_tokens=300))["tokens"] <= 300
        second = (await client.supersede(first, "Ana lives in Bergen."))["superseded_by"]
        await client.retract(second)
        token = (await client.forget(second))["token"]
        assert second in (await client.forget(second, token=token))["items"]
        assert (await client.append_messages("a / b", [{"role": "user", "content": "hi"}]))["positions"] == [0]
        assert (await client.push_task("ship", session="work"))["number"] == 1
        assert (await client.pop_task("done"))["status"] == "complete"
        made = await client.decide("Use Redis for the cache", confidence=0.8, reasons=REASONS)
        await client.review(made["decision_id"], "success", lesson="It was fast.")
        assert (await client.calibration())["n"] == 1
        assert [one["decision_id"] async for one in client.iter_pages("/v1/decisions", limit=1)] == [
            made["decision_id"]
        ]
        with pytest.raises(ApiError, match="reviewed", check=has_code("conflict")):
            await client.review(made["decision_id"], "failure")
        with pytest.raises(ApiError, check=has_code("not_found")):
            await client.expand(str(new_id()))
    async with api.client(await api.token("ana", "read")) as reader:
        with pytest.raises(ApiError, match="scope write", check=has_code("forbidden")):
            await reader.remember("x")
    async with Client("http://127.0.0.1:1", token="x", max_attempts=1) as nobody:
        unreachable = r"http://127\.0\.0\.1:1 cannot be reached: All connection"
        with pytest.raises(ApiError, match=unreachable, check=has_code("daemon_unreachable")):
            await nobody.calibration()


async def test_the_client_says_whether_the_daemon_is_away_or_its_database() -> None:
    async def respond(wire: Wire) -> None:
        problem = json.loads(bytes(error_response(DatabaseError("It is away.", hint="Start it."), wire.path).body))
        await wire.send(503, problem)

    async with endpoint(respond) as there, Client(there.url.removesuffix("/v1"), token="x", max_attempts=1) as client:
        with pytest.raises(ApiError, check=has_code("database_unavailable")) as failed:
            await client.calibration()
    assert failed.value.detail == f"The daemon at {there.url[:-3]} cannot reach its database: It is away."
    assert "run `newton doctor` on the host of the daemon" in failed.value.hint


@pytest.mark.parametrize("said", ["no JSON", "[]", "{}", '{"agent": 7}', '{"type": 7, "title": "x"}'])
async def test_a_stranger_at_the_address_of_a_daemon_is_named_as_one(said: str) -> None:
    async def respond(wire: Wire) -> None:
        await wire.send(200 if wire.path.endswith("token") else 404, said)

    async def told(wire: Wire) -> None:
        await wire.begin_stream()
        for event in ('event: compaction\ndata: {"event": "of another version"}', f"event: result\ndata: {said}"):
            wire.writer.write(f"{event}\n\n".encode())

    async with (
        endpoint(respond, respond, told) as there,
        Client(there.url.removesuffix("/v1"), token="x", max_attempts=1) as client,
    ):
        partner = RemoteAgent(client=client, token_info={"agent": "ana", "scope": "read", "model": None})
        with pytest.raises(ApiError, match="not from a Newton daemon"):
            await client.get_token_info()
        with pytest.raises(ApiError, match="404", check=has_code("unexpected_response")):
            await client.calibration()
        with pytest.raises(ApiError, match="not from a Newton daemon"):
            assert [piece async for piece in partner.run_turn("s", "hi")] == []


async def test_a_key_is_a_name_and_not_a_text(api: Api) -> None:
    async with api.http(await api.token("ana")) as http:
        for key in ("", "x" * 201, "a b"):
            answer = await http.post("/v1/memories", json={"content": "x"}, headers={"Idempotency-Key": key})
            assert answer.status_code == 422, key
        assert isinstance(answer, httpx2.Response)
