"""What comes again is done once; and who listens misses nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from newton import Client
from newton.clock import SystemClock
from newton.db.pool import Database
from newton.errors import ConflictError, DatabaseError, ForbiddenError, NotFoundError
from newton.ids import agent_id, new_id
from newton.runtime.access import tokens
from newton.runtime.answers import kept
from newton.runtime.api.problems import answer
from tests.endpoint import Wire, endpoint
from tests.system.cutting import cutting
from tests.system.served import Api, each_once, effects, served

REASONS = [{"kind": "analysis", "text": "fast"}]
CUT = 30


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
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


async def test_a_reply_that_was_cut_after_the_effect_is_fetched_again(api: Api) -> None:
    # R4
    token = await api.token("ana")
    async with cutting(api.url) as (url, proxy), api.client(token, url=url) as client:
        await each_once(client, CUT)
    assert len(proxy.cut) == CUT
    assert await effects(api) == [CUT // 3, CUT // 3, CUT // 3, CUT]


async def test_a_decision_whose_answer_was_lost_with_its_process_is_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R4
    async def dies(*given: object, **named: object) -> None:
        raise ConnectionResetError

    headers = {"Idempotency-Key": "k1"}
    body = {"description": "Use Redis for the cache", "confidence": 0.8, "reasons": REASONS}
    async with api.http(await api.token("ana"), **headers) as http:
        with monkeypatch.context() as patch:
            patch.setattr(kept, "keep", dies)
            assert (await http.post("/v1/decisions", json=body)).status_code == 503
        again = (await http.post("/v1/decisions", json=body)).json()
    assert again["new"] is False
    assert await api.rows("ana", "brain.decisions") == 1


async def listened(client: Client, many: int, *, after: int | None = None) -> list[int]:
    numbers: list[int] = []
    async for told in client.events(after=after):
        numbers.append(told.number)
        if len(numbers) == many:
            break
    return numbers


async def test_who_listens_hears_all_in_order_and_goes_on_after_a_restart(db: Database, tmp_path: Path) -> None:
    # R13
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        async with api.client(token) as client, api.client(await api.token("ben")) as ben:
            await client.remember("The kettle is blue.")
            await ben.remember("Ben's kettle is red.")
            hearing = asyncio.create_task(listened(client, 20, after=1))
            await asyncio.gather(*(client.push(f"goal {n}", session=f"s{n}") for n in range(20)))
            assert await hearing == list(range(2, 22))
    async with served(db, tmp_path) as api, api.client(token) as client:
        await client.remember("The cup is white.")
        assert await listened(client, 3, after=19) == [20, 21, 22]


async def test_listening_ends_with_the_token_and_with_the_daemon(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path) as api:
        for end in (_revoked, _closed):
            token = await api.token("ana")
            async with api.http(token) as http, http.stream("GET", "/v1/events") as answer:
                lines = answer.aiter_lines()
                assert await anext(lines) == ": newton"
                await end(api)
                assert [line async for line in lines] == [""]


async def _revoked(api: Api) -> None:
    owner = agent_id("ana")
    async with api.db.work(owner) as tx:
        await tokens.revoke(tx, "admin", agent_id=owner, now=SystemClock().now())
    api.app.state.board.poke(owner)


async def _closed(api: Api) -> None:
    api.app.state.board.close()


async def test_the_client_speaks_every_verb(api: Api) -> None:
    async with api.client(await api.token("ana")) as client:
        first = (await client.remember("Ana lives in Porto.", subject="Ana", confidence=0.9))["memory_id"]
        assert await client.confirm(first) is True
        assert (await client.expand(first))["full_text"] == "Ana lives in Porto."
        assert [hit["memory_id"] for hit in (await client.recall("where does Ana live?"))["found"]] == [first]
        assert (await client.context("where does Ana live?", tokens=300))["tokens"] <= 300
        second = await client.supersede(first, "Ana lives in Bergen.")
        await client.retract(second)
        assert await client.forget(second) == [second]
        assert await client.say("a / b", [{"role": "user", "content": "hi"}]) == [0]
        assert (await client.push("ship", session="work"))["number"] == 1
        assert (await client.pop("done"))["status"] == "complete"
        made = await client.decide("Use Redis for the cache", confidence=0.8, reasons=REASONS)
        await client.review(made["decision_id"], "success", lesson="It was fast.")
        assert (await client.calibration())["n"] == 1
        assert [one["decision_id"] async for one in client.pages("/v1/decisions", limit=1)] == [made["decision_id"]]
        with pytest.raises(ConflictError, match="reviewed"):
            await client.review(made["decision_id"], "failure")
        with pytest.raises(NotFoundError):
            await client.expand(str(new_id()))
    async with api.client(await api.token("ana", "read")) as reader:
        with pytest.raises(ForbiddenError, match="scope write"):
            await reader.remember("x")
    async with Client("http://127.0.0.1:1", token="x", attempts=1) as nobody:
        with pytest.raises(DatabaseError, match=r"http://127\.0\.0\.1:1 cannot be reached: All connection"):
            await nobody.calibration()


async def test_the_client_says_whether_the_daemon_is_away_or_its_database() -> None:
    async def respond(wire: Wire) -> None:
        problem = json.loads(bytes(answer(DatabaseError("It is away.", hint="Start it."), wire.path).body))
        await wire.send(503, problem)

    async with endpoint(respond) as there, Client(there.url.removesuffix("/v1"), token="x", attempts=1) as client:
        with pytest.raises(DatabaseError) as failed:
            await client.calibration()
    assert failed.value.what == f"The daemon at {there.url[:-3]} answers, but not its database: It is away."
    assert "`newton doctor` says more where the daemon runs" in failed.value.hint


async def test_a_key_is_a_name_and_not_a_text(api: Api) -> None:
    async with api.http(await api.token("ana")) as http:
        for key in ("", "x" * 201, "a b"):
            answer = await http.post("/v1/memories", json={"content": "x"}, headers={"Idempotency-Key": key})
            assert answer.status_code == 422, key
        assert isinstance(answer, httpx2.Response)
