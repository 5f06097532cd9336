"""`newton mcp` beside a daemon: it passes messages on, and opens neither a database nor a model."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, StdioServerParameters
from starlette.routing import Route

from newton.db.pool import Database
from newton.runtime.api.problems import MCP_PATH
from newton.runtime.cli.operations.mcp import McpConnector
from newton.runtime.cli.options import load_settings
from newton.runtime.daemon_address import ADDRESS_FILE
from newton.runtime.mcp.stdio_relay import StdioRelay
from newton.runtime.mcp.streamable_http import HttpTransport
from tests.system.daemons import Daemon, daemon
from tests.system.served import served
from tests.system.test_mcp import told

# What only a process needs that opens an agent itself.
OPENING = {"asyncpg", "onnxruntime", "newton.runtime.bootstrap", "newton.runtime.wiring", "mcp", "fastapi"}
# Runs a command, then prints the modules that it loaded.
COUNTED = """
import os, sys
from newton.__main__ import main
end = os._exit
def leave(code):
    print("LOADED", *sys.modules, file=sys.stderr, flush=True)
    end(code)
os._exit = leave
main()
"""


def environment(house: Path, **more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    return {**plain, "NEWTON_DATA_DIR": str(house / "data"), "NEWTON_EMBEDDING_PROVIDER": "none", **more}


def loaded(house: Path, *words: str, given: str = "", **more: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run a command; return it and the modules that its process has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, *words], input=given, capture_output=True, text=True, timeout=60, check=False,
        env=environment(house, **more), cwd=house,
    )  # fmt: skip
    before, _, modules = done.stderr.partition("LOADED")
    done.stderr = before
    return done, set(modules.split())


def request(number: int, method: str, **parameters: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n"


HANDSHAKE = (
    request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
    + '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
)


def replies(text: str) -> dict[object, Any]:
    """The messages by their id."""
    return {one["id"]: one for one in map(json.loads, text.splitlines())}


@asynccontextmanager
async def beside(house: Path, *words: str) -> AsyncGenerator[Client]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "newton", "mcp", *words], env=environment(house), cwd=str(house)
    )
    async with Client(command) as client:
        yield client


def test_messages_are_answered_without_opening_a_database_or_a_model(served: Daemon, house: Path) -> None:
    served.begins("relayed-pipes")
    given = HANDSHAKE + request(2, "tools/call", name="remember", arguments={"content": "Öl für die Säge."})
    done, modules = loaded(house, "mcp", "--agent", "relayed-pipes", "--session", "yard", given=given + "no message\n")
    answered = replies(done.stdout)
    assert (done.returncode, done.stderr, modules & OPENING) == (0, "", set())
    assert answered[1]["result"]["serverInfo"]["name"] == "newton"
    assert answered[2]["result"]["structuredContent"]["status"] == "new"
    assert answered[None]["error"]["code"] == -32700
    with served.client(**{"X-Newton-Agent": "relayed-pipes"}) as http:
        kept = http.get(f"/v1/memories/{answered[2]['result']['structuredContent']['memory_id']}").json()
    assert (kept["full_text"], kept["trust"]) == ("Öl für die Säge.", "tool"), "as in a process of its own"


async def test_the_daemon_is_used_only_with_the_same_settings_and_names_that_a_header_can_hold(
    served: Daemon, house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("NEWTON_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(house)

    async def is_used(session: str | None = None, **more: str) -> bool:
        with monkeypatch.context() as patch:
            for name, value in environment(house, **more).items():
                patch.setenv(name, value)
            async with AsyncExitStack() as stack:
                connector = McpConnector(settings=load_settings(), session=session, stack=stack)
                return await connector.can_use_daemon()

    assert await is_used() and await is_used("office", NEWTON_AGENT="default")
    assert not await is_used(NEWTON_PACK="support")
    assert not await is_used("Büro")
    assert not await is_used(NEWTON_DATA_DIR=str(tmp_path))


async def test_a_daemon_that_runs_again_with_other_settings_is_not_used(
    served: Daemon, house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("NEWTON_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    for name, value in environment(house).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(house)

    async def lines() -> AsyncGenerator[bytes]:
        yield request(7, "tools/list").encode()

    written: list[str] = []
    file = house / "data" / ADDRESS_FILE
    address = file.read_text()
    async with AsyncExitStack() as stack:
        connector = McpConnector(settings=load_settings(), session=None, stack=stack)
        client = await connector.connect()
        monkeypatch.setenv("NEWTON_PACK", "support")
        assert await connector.connect() is client, "one comparison for each run of the daemon"
        file.write_text(json.dumps({**json.loads(address), "run_id": "another run"}))
        try:
            await StdioRelay(connector.connect, written.append).run(lines())
        finally:
            file.write_text(address)
    assert "restarted with another value of pack" in replies(written[0])[7]["error"]["message"]


@pytest.mark.slow
def test_an_unknown_agent_is_refused_in_json_rpc(served: Daemon, house: Path) -> None:
    done, _ = loaded(house, "mcp", "--agent", "nobody-here", given=HANDSHAKE)
    assert "nobody-here" in replies(done.stdout)[1]["error"]["message"]


@pytest.mark.fault
async def test_a_daemon_that_is_restarted_answers_the_same_client_again(home: Path) -> None:
    with daemon(home, NEWTON_EMBEDDING_PROVIDER="none") as first:
        async with beside(home) as client:
            kept = await told(client, "remember", content="The kettle is blue.")
            first.process.terminate()
            await asyncio.to_thread(first.process.wait)
            waiting = asyncio.create_task(told(client, "expand", memory_id=kept["memory_id"]))
            with daemon(home, NEWTON_EMBEDDING_PROVIDER="none"):
                assert (await waiting)["text"] == "The kettle is blue."


async def test_a_call_that_comes_while_the_daemon_ends_is_asked_to_retry(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        routes = [route for route in api.app.router.routes if isinstance(route, Route) and route.path == MCP_PATH]
        await cast("HttpTransport", routes[0].endpoint).close()
        async with api.http(token, Accept="application/json, text/event-stream") as http:
            answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer.status_code == 503 and "shutting down" in answer.text
