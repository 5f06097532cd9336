"""The MCP SDK for Python. The argument is the transport: http or stdio."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
from harness import CellTask, Result, describe, serve
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

IN_PIPES = sys.argv[1] == "stdio"


@asynccontextmanager
async def connect(
    task: CellTask, *, url: str = "", token: str = "", agent: str = "", log: IO[str] = sys.stderr
) -> AsyncGenerator[Client]:
    """Connect to the daemon, or start `newton mcp` with the database of the daemon; it writes its errors to `log`."""
    if IN_PIPES:
        command, *words = os.environ["NEWTON_PROGRAM"].split()
        env = {"NEWTON_DATA_DIR": task.data_dir, "PYTHONPATH": os.environ["NEWTON_FOLDER"], "PATH": os.environ["PATH"]}
        words += ["mcp", "--agent", agent or task.agent]
        folder = Path(task.data_dir).parent  # has newton.toml
        server = StdioServerParameters(command=command, args=words, env=env, cwd=folder)
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {token or task.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{url or task.url}/mcp", http_client=http)) as client,
    ):
        yield client


async def call(client: Client, name: str, **given: Any) -> Result:
    """Return the result of a tool."""
    result = await client.call_tool(name, given)
    return {"text": result.content[0].text, "structured": result.structured_content, "is_error": bool(result.is_error)}


async def use_tools(task: CellTask) -> Result:
    async with connect(task) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        stored = await call(client, "remember", content=task.fact, source="own")
        found = await call(client, "recall", query=task.question)
    return {"names": names, "stored": stored, "found": found}


async def remember_across_connections(task: CellTask) -> Result:
    async with connect(task) as client:
        await call(client, "remember", content=task.fact, source="own")
    async with connect(task) as client:
        return await call(client, "context", input=task.question, max_tokens=500)


async def catch_failure(action: Callable[[], Awaitable[object]]) -> Result:
    """Return the error that an action raises; of several at once, the first."""
    try:
        await action()
    except (MCPError, httpx2.HTTPError, OSError, BaseExceptionGroup) as raised:
        error: BaseException = raised
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        return describe(error)
    raise AssertionError("no error was raised")


async def fail(task: CellTask) -> Result:
    async def use(**options: Any) -> None:
        async with connect(task, **options) as client:
            await client.list_tools()

    async with connect(task) as client:
        refused = await call(client, "recall", query="Porto", limit=0)
    found: Result = {"input": {"class": "is_error", "status": None, "message": refused["text"]}}
    assert refused["is_error"]
    if IN_PIPES:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
            failed = await catch_failure(lambda: use(agent="nobody", log=log))
            log.seek(0)
            said = f"{failed['message']}: {log.read()}"
        return {**found, "agent": {**failed, "message": said}}
    found["token"] = await catch_failure(lambda: use(token="nwt_wrong"))
    return {**found, "daemon": await catch_failure(lambda: use(url="http://127.0.0.1:9"))}


def tools(task: CellTask) -> Result:
    return asyncio.run(use_tools(task))


def remembers(task: CellTask) -> Result:
    return asyncio.run(remember_across_connections(task))


def errors(task: CellTask) -> Result:
    return asyncio.run(fail(task))


if __name__ == "__main__":
    serve({"tools": tools, "structured": tools, "remembers": remembers, "errors": errors})
