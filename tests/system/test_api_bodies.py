"""How large a body may be, and who may send one."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import cast

import pytest

from newton.client import ApiError, MessageDict
from newton.db.pool import Database
from newton.runtime.api.middleware import request_limits
from newton.runtime.api.middleware.request_limits import MAX_BODY_BYTES
from tests.endpoint import endpoint, says
from tests.support import has_code
from tests.system.fuzzing import fuzz
from tests.system.served import Api, served
from tests.system.strangers import HALL, Street, at_once, echo


async def test_a_large_body_is_refused_unread(api: Api) -> None:
    # S3: the head alone is sent, and answered
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    head = f"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n"
    writer.write(head.encode())
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()


async def test_a_body_without_a_length_ends_at_the_limit(api: Api) -> None:
    # S3
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65_536 + 2):
            yield b"x" * 65_536

    async with api.http(await api.token("ana")) as http:
        assert (await http.post("/v1/memories", content=endless())).status_code == 413


async def begun(api: Api, writers: AsyncExitStack, token: str, size: int) -> str:
    """What is answered, within a moment, to so much of a body; nothing while it is waited for more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    writers.callback(writer.close)
    head = f"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Length: {MAX_BODY_BYTES}\r\n\r\n".encode() + b"x" * size)
    with suppress(TimeoutError):
        return (await asyncio.wait_for(reader.readline(), 0.3)).decode()[9:12]
    return ""


async def test_who_has_no_token_takes_no_room_from_others_and_nobody_takes_all(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S3, R11
    monkeypatch.setattr(request_limits, "MAX_TOTAL_BYTES", 1_000_000)
    monkeypatch.setattr(request_limits, "MAX_BYTES_PER_CALLER", 500_000)
    monkeypatch.setattr(request_limits, "MAX_UNAUTHENTICATED_BYTES", 100_000)
    ana, ben = await api.token("ana"), await api.token("ben")
    large, small = 400_000, 60_000
    strangers = [("nwt_nonsense", large), ("", large), (f"{ana[:-4]}AAA=", small), ("", small)]
    async with AsyncExitStack() as writers, api.http(await api.token("cat")) as http:
        given = [await begun(api, writers, token, size) for token, size in strangers]
        assert given == ["401", "401", "", "401"]
        given = [await begun(api, writers, token, large) for token in (ana, ana, ben, ben)]
        assert given == ["", "429", "", "429"]
        said = {"content": "x" * (small + 10_000)}
        assert (await http.post("/v1/memories", json=said)).status_code == 201
        assert (await http.post("/v1/memories", json={"content": "The kettle is blue."})).status_code == 201


async def test_an_import_is_as_large_as_it_is_but_nobody_sends_one_without_a_token(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S3
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    writer.write(b"POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
    assert b" 401 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    fact = b'{"type":"fact","content":"The kettle is blue.","at":"2026-03-01T09:00:00Z"}\n'
    async with api.http(await api.token("ana")) as http:
        answer = (await http.post("/v1/import", content=b"x" * MAX_BODY_BYTES + b"\n" + fact)).json()
        assert (answer["new"], [one["place"] for one in answer["rejected"]]) == (1, ["line 1"])
        monkeypatch.setattr(request_limits, "MAX_FILE_BYTES", 10)
        assert (await http.post("/v1/import", content=fact)).status_code == 413


async def test_who_sends_slowly_keeps_nobody_waiting(api: Api) -> None:
    # S3
    port = int(api.url.rpartition(":")[2])
    head = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    try:
        for one in slow:
            one.send(head)
        async with api.http(await api.token("ana")) as http:
            for _ in range(5):
                assert (await http.get("/v1/frames")).status_code == 200
    finally:
        for one in slow:
            one.close()


async def test_the_client_skips_invalid_messages_only_if_it_is_told_to(api: Api) -> None:
    invalid = cast("MessageDict", {"role": "usr", "content": "hi"})
    messages: list[MessageDict] = [invalid, {"role": "user", "content": "ho"}]
    async with api.client(await api.token("ana")) as client:
        with pytest.raises(ApiError, match=r"messages\.0\.role", check=has_code("invalid_input")):
            await client.append_messages("talk", messages)
        stored = await client.append_messages("talk", messages, on_invalid="skip")
        assert (stored["positions"], [one["item"] for one in stored["refused"]]) == ([0], ["messages[0]"])
        assert stored["refused"][0]["detail"].startswith("role: ")
        with pytest.raises(ApiError, check=has_code("invalid_input")):
            await client.append_messages("talk", [invalid], on_invalid="skip")


async def test_a_misspelt_field_names_the_right_one(api: Api) -> None:
    async with api.client(await api.token("ana")) as client:
        with pytest.raises(ApiError, match=r"body\.importanc: There is no such field") as refused:
            await client.post("/v1/memories", {"content": "Ana lives in Porto.", "importanc": 3})
        assert refused.value.hint.startswith("Did you mean 'importance'?")
        with pytest.raises(ApiError, match=r"query\.kind: There is no such field") as in_query:
            await client.get("/v1/memories", {"kind": ["fact"]})
        assert in_query.value.hint.startswith("Did you mean 'kinds'?")
        with pytest.raises(ApiError, match=r"body\.contnt: There is no such field"):  # not: content is missing
            await client.post("/v1/memories", {"contnt": "Ana lives in Porto."})
        with pytest.raises(ApiError, match=r"'defalt' is not a compaction strategy\. Use one of: default, "):
            await client.post("/v1/sessions/talk/turns", {"input": "Hi.", "strategy": "defalt"})
        with pytest.raises(ApiError, match=r"body\.messages\.0: Input should be an object\."):
            await client.append_messages("talk", cast("list[MessageDict]", ["hi"]))
        with pytest.raises(ApiError, match="There is no endpoint /v1/v1/recall") as doubled:
            await client.post("/v1/v1/recall", {"query": "x"})
        assert "has /v1 twice" in doubled.value.hint


async def test_a_preview_over_http_names_what_cannot_be_read_and_stores_nothing(api: Api) -> None:
    body = json.dumps(
        [{"id": "1", "memory": "The kettle is blue."}, None, {"id": "2", "memory": "The cup is."}]
    ).encode()
    async with api.http(await api.token("ana")) as http:
        preview = (await http.post("/v1/import?preview=true", content=body)).json()
        assert (preview["facts"], preview["rejected"][0]["place"]) == (2, "upload, entry 2")
        assert await api.rows("ana", "heart.facts") == 0
        report = (await http.post("/v1/import", content=body)).json()
        assert (report["new"], report["rejected"][0]["place"], report["passed_over"]) == (2, "upload, entry 2", {})


@pytest.mark.slow
async def test_no_request_makes_it_fail_and_no_answer_is_otherwise_than_described(db: Database, tmp_path: Path) -> None:
    # S2
    async with (
        endpoint(says(["Fine."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        assert await asyncio.to_thread(fuzz, api.url, await api.token("ana"), examples=2) > 80


@pytest.mark.slow
async def test_agents_that_call_at_random_see_nothing_of_each_other(db: Database, tmp_path: Path) -> None:
    # S1, S9
    street = Street()
    async with (
        endpoint(echo(street)) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        await at_once(api, street, agents=4, calls=30)
        assert model.asked
    assert street.faults == []
    assert set(street.answered) == {*HALL, "events"}
    assert street.answered.total() - street.answered["events"] == 120 + 2
    assert street.refused.keys() - {429} == {401, 403, 404}, "429 only on a busy machine"
