"""Documents over HTTP and through the client: who may store, list and delete them, and what is refused."""

import base64
from collections.abc import AsyncIterator

import httpx2
import pytest

from newton.client import ApiError
from tests.system.served import Api

PAGE = {"name": "kettle.md", "content": "# Kettles\n\nFill the kettle with water."}


@pytest.fixture
async def writer(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with api.http(await api.token("ana", "admin")) as client:
        yield client


async def test_a_writer_stores_lists_and_deletes_a_document(api: Api, writer: httpx2.AsyncClient) -> None:
    stored = await writer.post("/v1/documents", json=PAGE)
    assert stored.status_code == 200, stored.text
    document_id = stored.json()["document_id"]
    assert {**stored.json(), "document_id": ""} == {
        "document_id": "",
        "format": "markdown",
        "encoding": "utf-8",
        "new": 1,
        "unchanged": 0,
        "replaced": 0,
        "redacted": {},
        "warning": None,
    }
    (listed,) = (await writer.get("/v1/documents")).json()["items"]
    assert (listed["ref"], listed["title"], listed["passages"]) == ("kettle.md", "Kettles", 1)
    (passage,) = (await writer.get(f"/v1/documents/{document_id}")).json()["passages"]
    assert (passage["heading"], passage["location"]) == ("Kettles", "line 3")
    found = (await writer.post("/v1/recall", json={"query": "kettle water"})).json()["items"]
    assert found[0]["text"].startswith("[Kettles, line 3] Fill the kettle")
    async with api.http(await api.token("ana", "read")) as reader:
        assert (await reader.post("/v1/documents", json=PAGE)).status_code == 403
        assert (await reader.delete(f"/v1/documents/{document_id}")).status_code == 403
    plan = (await writer.delete(f"/v1/documents/{document_id}")).json()
    gone = await writer.delete(f"/v1/documents/{document_id}", params={"token": plan["token"]})
    assert gone.status_code == 200 and gone.json()["items"] == [passage["memory_id"]]
    assert (await writer.get("/v1/documents")).json()["items"] == []


async def test_the_same_name_replaces_and_the_same_key_repeats_nothing(writer: httpx2.AsyncClient) -> None:
    await writer.post("/v1/documents", json=PAGE)
    changed = {**PAGE, "content": "# Kettles\n\nFill the kettle with milk."}
    key = {"Idempotency-Key": "once"}
    first = await writer.post("/v1/documents", json=changed, headers=key)
    assert (first.json()["new"], first.json()["replaced"]) == (1, 1)
    again = await writer.post("/v1/documents", json=changed, headers=key)
    assert again.json() == first.json() and again.headers["Idempotency-Replayed"] == "true"
    assert len((await writer.get("/v1/documents")).json()["items"]) == 1


async def test_bytes_are_sent_in_base64_and_text_of_others_is_quarantined(writer: httpx2.AsyncClient) -> None:
    raw = base64.b64encode("part;note\nFähre;alt\n".encode("cp1252")).decode()
    body = {"name": "parts.csv", "content_base64": raw, "encoding": "cp1252", "source": "web"}
    stored = (await writer.post("/v1/documents", json=body)).json()
    assert (stored["format"], stored["encoding"]) == ("table", "cp1252")
    (passage,) = (await writer.get(f"/v1/documents/{stored['document_id']}")).json()["passages"]
    assert passage["text"] == "part | note\nFähre | alt" and passage["quarantined"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": "a.md"}, "needs either `content` or `content_base64`"),
        ({"name": "a.md", "content": "x", "content_base64": "eA=="}, "needs either"),
        ({"name": "a.md", "content_base64": "?"}, "invalid Base64"),
        ({"name": "a.md", "content": "  "}, "a.md: it is empty."),
        ({"name": "a.docx", "content_base64": "eA=="}, "a.docx: it is no Office document."),
        ({"name": "a.bin", "content_base64": "AAEC"}, "a.bin: it is a binary file."),
        ({"name": "a.md", "content_base64": "eA==", "encoding": "runes"}, "is not a known encoding"),
    ],
)
async def test_what_is_no_document_is_refused(writer: httpx2.AsyncClient, body: dict[str, str], reason: str) -> None:
    refused = await writer.post("/v1/documents", json=body)
    assert refused.status_code == 422 and reason in refused.text


async def test_the_client_stores_reads_and_deletes(api: Api) -> None:
    async with api.client(await api.token("ana", "admin")) as client:
        stored = await client.upload_document("boat.py", b"def row():\n    return 1\n", title="Rowing")
        assert stored["format"] == "code"
        (document,) = (await client.documents())["items"]
        assert (document["title"], document["passages"]) == ("Rowing", 1)
        read = await client.document(document["document_id"])
        assert read["passages"][0]["location"] == "row, lines 1-2"
        token = (await client.delete_document(document["document_id"]))["token"]
        deleted = await client.delete_document(document["document_id"], token=token)
        assert deleted["items"] == [read["passages"][0]["memory_id"]]
        with pytest.raises(ApiError, match=r"it is empty"):
            await client.upload_document("empty.md", "")
