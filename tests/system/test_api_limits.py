"""What is refused before anything is done with it, and who has to wait."""

import asyncio
from contextlib import suppress
from contextvars import Context

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from structlog.testing import capture_logs

from newton.clock import SystemClock
from newton.errors import TimeoutExceededError
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.runtime import daemon
from newton.runtime.api.middleware import admission
from newton.runtime.api.middleware.admission import (
    LONG_LIVED_LIMITS,
    stall_timeout,
)
from newton.runtime.api.middleware.request_limits import MAX_JSON_DEPTH
from newton.runtime.api.middleware.request_log import SECURITY_HEADERS
from tests.system.served import Api

NAMES = [
    ("Origin", "https://evil.example", 403),
    ("Origin", "null", 403),
    ("Origin", "http://localhost.evil.example", 403),
    ("Origin", "http://localhost:3000", 200),
    ("Host", "evil.example", 403),
    ("Host", "127.0.0.1.evil.example:8700", 403),
    ("Host", "localhost", 200),
    ("Host", "[::1]:8700", 200),
]


async def test_only_our_names_are_answered_to(api: Api) -> None:
    # S9
    async with api.http(await api.token("ana")) as http:
        for header, value, status in NAMES:
            answer = await http.get("/v1/frames", headers={header: value})
            assert answer.status_code == status, value
            assert status == 200 or answer.json()["title"] == "Origin not allowed"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


MISREAD = [
    ("memories", b'{"content": tea}', "application/json", "The body is not JSON: Expecting value at character 12."),
    ("memories", b'{"content": "x"}', "application/x-www-form-urlencoded", "The content type is not JSON."),
    ("memories", b"", "application/json", "The body is missing."),
    ("memories", b'{"contents": "x"}', "application/json", "body.contents: There is no such field."),
    (
        "censors/6bb11f6d-79cc-43b1-8dab-f0bba3475a2f/retire",
        b'{"because": "x"}',
        "application/json",
        "takes no body.",
    ),
]


@pytest.mark.parametrize(("path", "body", "media", "said"), MISREAD)
async def test_a_body_that_does_not_fit_is_refused_with_what_is_wrong(
    api: Api, path: str, body: bytes, media: str, said: str
) -> None:
    # S3
    async with api.http(await api.token("ana")) as http:
        answer = await http.post(f"/v1/{path}", content=body, headers={"Content-Type": media})
    assert (answer.status_code, answer.json()["hint"] != "") == (422, True)
    assert answer.json()["detail"].endswith(said)


CHAT = "POST /v1/chat/completions"
UNANSWERED: list[tuple[str, int, str, dict[str, str]]] = [
    (CHAT, 400, "invalid_request_error", {}),
    (CHAT, 401, "invalid_request_error", {"Authorization": ""}),
    (CHAT, 403, "permission_error", {"Origin": "https://elsewhere.example"}),
    ("GET /v1/models", 403, "permission_error", {"Host": "elsewhere.example"}),
    ("GET /v1/chat/completions", 405, "invalid_request_error", {}),
    (f"{CHAT}?x=%00", 400, "invalid_request_error", {}),
    (CHAT, 429, "rate_limit_error", {}),
    ("POST /v1/images/generations", 404, "invalid_request_error", {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("way", "status", "kind", "headers"), UNANSWERED)
async def test_clients_of_openai_read_failures_in_its_shape_whoever_refuses(
    api: Api, way: str, status: int, kind: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if status == 429:
        monkeypatch.setitem(LONG_LIVED_LIMITS, "turns", (0, 0))
    method, _, path = way.partition(" ")
    async with api.http() as http:
        answer = await http.request(method, path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["type"]) == (status, kind)
    assert answer.json()["error"]["message"] and answer.headers["content-type"] == "application/json"


async def test_what_nobody_foresaw_is_answered_as_all_else_and_says_nothing(api: Api) -> None:
    # S3, S9
    async def breaks(request: Request) -> Response:
        raise ValueError("the passphrase")

    api.app.router.routes.append(Route("/breaks", breaks))
    with capture_logs() as noted:
        async with api.http() as http:
            answer = await http.get("/breaks")
    answered, failed = noted
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:newton:newton_error")
    assert answer.headers["x-request-id"] == answered["request_id"]
    assert SECURITY_HEADERS.items() <= {name.title(): value for name, value in answer.headers.items()}.items()
    assert failed["error"] == "ValueError" and "passphrase" not in f"{noted}{answer.text}"


@pytest.mark.slow
async def test_who_never_ends_a_head_is_dropped_and_who_ends_it_is_not(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # R11
    monkeypatch.setattr(daemon, "REQUEST_HEAD_SECONDS", 0.3)
    door, whole = int(api.url.rpartition(":")[2]), b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def dropped(*said: bytes, answers: int = 0) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door)
        for part in said:
            writer.write(part)
            await asyncio.sleep(0.1)  # each comes by itself
            answers -= b" 200 OK" in (await reader.read(1_000) if part.endswith(b"\r\n\r\n") else b"")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 3) == b""
        writer.close()
        assert answers == 0

    dripping = [b"GET /health/live HTTP/1.1\r\nX-A: ", *([b"a"] * 5)]
    again = dropped(whole[:9], whole[9:], *dripping, answers=1)
    await asyncio.gather(dropped(), dropped(*dripping), dropped(b"GET"), again)
    async with api.http() as http:  # a connection that is kept, and used again later
        for _ in range(2):
            assert (await http.get("/health/live")).status_code == 200
            await asyncio.sleep(0.4)


async def test_an_export_ends_when_nothing_moves_and_not_before(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async with api.http(await api.token("ana")) as http:
        monkeypatch.setattr(admission, "RESPONSE_SECONDS", 0)
        answer = await http.get("/v1/export")
        assert (answer.status_code, answer.json()["title"]) == (503, "Timeout")
    with pytest.raises(TimeoutExceededError):
        async with stall_timeout():
            await asyncio.Event().wait()
    monkeypatch.setattr(admission, "RESPONSE_SECONDS", 0.2)
    clock = asyncio.get_running_loop().time
    end = clock() + 0.4  # twice the limit
    async with stall_timeout() as moved:
        while clock() < end:
            moved(1)
            await asyncio.sleep(0)


UNKEPT = [
    b'{"content": ' + b"[" * (MAX_JSON_DEPTH + 1) + b"]" * (MAX_JSON_DEPTH + 1) + b"}",
    b"[" * 1_000_000,
    b'{"content": "half \\ud800 of it"}',
    b'{"content": "a NUL \\u0000"}',
    b'{"content": "a NUL \x00"}',
    b'{"content": "\xff"}',
    b'{"content": "x", "confidence": NaN}',
    b'{"content": "x", "confidence": 1e308}',
    b'{"content": "x", "importance": -Infinity}',
    b'{"content": "x", "at": 1e308}',
    b'{"content": "x", "at": "9999-12-31T23:59:59-23:59"}',
    b'{"content": "x", "no such field": 1}',
    b'{"content": "',
    b'"x"',
    b"",
]


async def test_what_cannot_be_kept_is_refused(api: Api) -> None:
    # S3
    async with api.http(await api.token("ana"), **{"content-type": "application/json"}) as http:
        for body in UNKEPT:
            answer = await http.post("/v1/memories", content=body)
            assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), body[:99]
    assert await api.rows("ana", "memory.memories") == 0


@pytest.mark.parametrize("media", ["application/json; x=ndjson", 'application/json; x="application/x-ndjson"'])
async def test_no_parameter_of_a_type_spares_a_body_the_look(api: Api, media: str) -> None:
    # S3
    async with api.http(await api.token("ana"), **{"content-type": media}) as http:
        for body in UNKEPT[:6]:
            assert (await http.post("/v1/memories", content=body)).status_code == 422, body[:99]


async def test_what_only_looks_like_it_is_taken(api: Api) -> None:
    # S3
    told = 'a \\u0000 in words, "[[[" and a whole \U0001f600'
    async with api.http(await api.token("ana")) as http:
        made = await http.post("/v1/memories", json={"content": told + "[" * 99})
        assert made.status_code == 201
        known = (await http.get(f"/v1/memories/{made.json()['memory_id']}")).json()
        assert known["full_text"] == told + "[" * 99
        assert (await http.get("/v1/sessions/a%00b/view")).status_code == 422
        assert (await http.get("/v1/calibration?category=%00")).status_code == 422


@pytest.mark.parametrize("name", ["Authorization", "X-Newton-Agent", "X-Newton-User", "Idempotency-Key"])
async def test_a_repeated_header_that_says_who_acts_is_refused(api: Api, name: str) -> None:
    # S9
    async with api.http() as http:
        answer = await http.get("/v1/frames", headers=[(name, "one"), (name, "two")])
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:newton:invalid_input")
    assert name in answer.json()["detail"]


async def test_methods_of_somebodys_own_making_are_one_series(api: Api) -> None:
    # R11
    async with api.http("nobody") as http:
        for n in range(5):
            assert (await http.request(f"MADE{n}", "/v1/frames")).status_code == 405
    async with api.http() as http:
        page = (await http.get("/metrics")).text
    assert "MADE" not in page
    assert any(line.startswith("newton_http_requests_total") and 'method="other"' in line for line in page.splitlines())


async def test_nobody_waits_for_the_opening_of_another_agent(api: Api) -> None:
    minds, slow = api.app.state.agents, derive_agent_id("slow")
    known = await minds.create("ana")
    async with api.db.transaction(slow) as tx:  # whoever begins that agent waits for the end of this
        await agents.SQL["insert_agent"].execute(tx, agent_id=slow, name="slow", now=SystemClock().now())
        opening = [asyncio.create_task(minds.create("slow"), context=Context()) for _ in range(2)]
        others = [asyncio.create_task(minds.create(name), context=Context()) for name in ("ana", "ben")]
        ana, ben = await asyncio.wait_for(asyncio.gather(*others), 5)
        assert (ana is known, ben.settings.agent) == (True, "ben")
        assert not any(one.done() for one in opening)
    first, second = await asyncio.gather(*opening)
    assert first is second
