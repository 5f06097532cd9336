"""Long outputs, pasted texts and files over HTTP, MCP, by both clients, by commands and in the chat."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from newton.client import ApiError, Client, SyncClient
from tests.support import has_code
from tests.system.served import Api
from tests.system.typed import ok, typed

LINES = [f"item {n} answered in {n % 90} ms" for n in range(1, 1_501)]
LINES[1_199] = "the scanner refused the red crate"
OUTPUT = "\n".join(LINES)


@pytest_asyncio.fixture
async def ana(api: Api) -> AsyncGenerator[Client]:
    async with api.client(await api.token("ana")) as client:
        yield client


async def append_output(client: Client, session: str = "yard") -> None:
    call = {"id": "c1", "name": "bash", "arguments": json.dumps({"command": "scan all"})}
    messages: Any = [
        {"role": "user", "content": "Scan it."},
        {"role": "assistant", "content": "", "calls": [call]},
        {"role": "tool", "content": OUTPUT, "answers": "c1"},
    ]
    await client.append_messages(session, messages)


async def test_an_output_is_listed_read_searched_and_compared_over_http(ana: Client) -> None:
    # S003-26
    await append_output(ana)
    (kept,) = (await ana.artifacts(session="yard"))["items"]
    assert (kept["name"], kept["line_count"], kept["trust"]) == ("bash-scan-all.out", 1_500, "tool")
    named: Any = {"name": kept["name"]}
    page = await ana.read_artifact(**named, lines="1195-1205")
    assert page["passages"][0]["lines"] == LINES[1_194:1_205]
    found = await ana.read_artifact(search="scanner refused")
    assert LINES[1_199] in found["passages"][0]["lines"] and 1_200 in found["passages"][0]["found_lines"]
    assert (await ana.artifact_text(kept["name"], session="yard"))["text"] == OUTPUT
    changed = await ana.add_artifact("yard", kept["name"], content=OUTPUT.replace("red", "blue"))
    assert (changed["version"], changed["redacted"], changed["trust"]) == (2, {}, "user")
    assert "-the scanner refused the red crate" in (await ana.diff_artifact(kept["name"]))["diff"]
    assert [one["version"] for one in (await ana.artifacts(**named))["items"]] == [2, 1]
    view = await ana.view("yard")
    assert "1200| the scanner refused the red crate" in json.dumps(view)
    assert (await ana.delete_artifact(kept["name"]))["deleted"] == 2
    with pytest.raises(ApiError, match="no artifact", check=has_code("not_found")):
        await ana.read_artifact(**named, session="yard", lines="1")


async def test_a_binary_is_kept_by_reference_and_a_wrong_upload_is_refused(ana: Client) -> None:
    data = bytes(range(256)) * 10
    kept = await ana.add_artifact("yard", "plan.png", data=base64.b64encode(data).decode())
    assert (kept["byte_count"], kept["line_count"], kept["media_type"]) == (2_560, 0, "image/png")
    assert kept["sha256"] == hashlib.sha256(data).hexdigest()
    for wrong in (
        ana.add_artifact("yard", "b", content="x", data="eA=="),
        ana.add_artifact("yard", "b"),
        ana.add_artifact("yard", "b", data="?"),
        ana.add_artifact("yard", "b", sha256="0" * 64),
    ):
        with pytest.raises(ApiError, check=has_code("invalid_input")):
            await wrong
    with pytest.raises(ApiError, match="binary", check=has_code("invalid_input")):
        await ana.read_artifact(name="plan.png", session="yard")


async def test_a_model_reads_over_mcp_and_what_it_saves_is_believed_as_a_tool(ana: Client) -> None:
    await append_output(ana)
    listed = await ana.call_tool("artifacts", {"session": "yard"})
    assert [one["name"] for one in listed["items"]] == ["bash-scan-all.out"]
    read = await ana.call_tool("read_artifact", {"session": "yard", "search": "scanner crate"})
    assert "1200> the scanner refused the red crate" in read["passages"][0]["lines"]
    for source, trust in (("own", "tool"), ("web", "web")):
        given = {"session": "yard", "name": "notes.md", "content": f"ask Bo, {source}\n", "source": source}
        assert (await ana.call_tool("add_artifact", given))["trust"] == trust


async def test_the_synchronous_client_and_another_agent(api: Api, ana: Client) -> None:
    await append_output(ana)
    token, other = await api.token("ana"), await api.token("ben")

    def use() -> list[str]:
        with SyncClient(api.url, token=token) as client:
            return client.read_artifact(search="red crate")["passages"][0]["lines"]

    assert LINES[1_199] in await asyncio.to_thread(use)
    async with api.client(other) as ben:
        with pytest.raises(ApiError, check=has_code("not_found")):
            await ben.artifacts()


def test_a_person_adds_reads_compares_saves_and_deletes(home: Path) -> None:
    (home / "scan.log").write_text(OUTPUT, encoding="utf-8")
    added = ok(typed(home, "artifacts", "add", "scan.log", "--session", "yard"))
    assert added.endswith(f"Stored scan.log, version 1, in the session yard: 1,500 lines, {len(OUTPUT):,} bytes.\n")
    (home / "scan.log").write_text(OUTPUT.replace("red", "blue"), encoding="utf-8")
    ok(typed(home, "artifacts", "add", "scan.log", "--session", "yard"))
    (home / "plan.png").write_bytes(b"\x89PNG\0\0")
    assert "image/png, 6 bytes, not stored" in ok(typed(home, "artifacts", "add", "plan.png", "--session", "yard"))
    assert "scan.log  version 2  upload" in ok(typed(home, "artifacts"))
    assert "1200> the scanner refused the blue crate" in ok(typed(home, "artifacts", "show", "--search", "blue crate"))
    assert ok(typed(home, "artifacts", "show", "scan.log", "--lines", "1200", "--version", "1")) == (
        "1200| the scanner refused the red crate\n"
    )
    assert "+the scanner refused the blue crate" in ok(typed(home, "artifacts", "diff", "scan.log"))
    ok(typed(home, "artifacts", "save", "scan.log", "first.log", "--version", "1"))
    assert (home / "first.log").read_text(encoding="utf-8") == OUTPUT
    assert typed(home, "artifacts", "save", "scan.log", "first.log").returncode != 0, "a file is not overwritten"
    assert ok(typed(home, "artifacts", "delete", "scan.log", "--yes")) == "Deleted 2 versions.\n"
    missing = typed(home, "artifacts", "show", "scan.log")
    assert missing.returncode != 0 and "Its artifacts are plan.png" in missing.stderr
