"""An MCP server that is connected by streamable HTTP: its tools in a turn, its header, and its end."""

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from newton.runtime.mcp_servers.server_pool import McpServerPool
from newton.setting_types import McpServerSettings
from tests.scenarios.conftest import Mind
from tests.scenarios.handy import call
from tests.scenarios.serving_tools import acting
from tests.support import until

pytestmark = pytest.mark.fault

EVENTS = {"content-type": "text/event-stream"}


@asynccontextmanager
async def http_server(sent: list[str], token: str) -> AsyncGenerator[str]:
    """A server of the SDK with one tool, which only accepts requests with the token; its URL."""
    served = MCPServer("post")

    @served.tool()
    def send(text: str) -> str:
        """Send a text."""
        sent.append(text)
        return f"sent {text}"

    async def authorize(request: Request, go_on: RequestResponseEndpoint) -> Response:
        is_known = request.headers.get("authorization") == f"Bearer {token}"
        return await go_on(request) if is_known else Response(status_code=401)

    app = served.streamable_http_app()
    app.add_middleware(BaseHTTPMiddleware, dispatch=authorize)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())

    async def started() -> bool:
        return server.started

    await until(started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task


async def test_a_server_over_http_is_called_with_its_header_and_its_end_costs_the_turn_only_a_message(
    mind: Mind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setenv("POST_TOKEN", "of-the-post")
    async with acting(mind, tmp_path) as post:
        async with http_server(sent, "of-the-post") as url:
            fields = {"url": url, "headers": {"Authorization": "Bearer ${POST_TOKEN}"}, "timeout_seconds": 5}
            post.pool = McpServerPool(servers={"post": McpServerSettings.model_validate(fields)})
            assert "did not allow" in str((await post.sends("one"))["error"]) and sent == []
            post.answers = ["always"]
            assert (await post.sends("two"))["output"] == "sent two" and sent == ["two"]
        model = await post.says("Send it.", [call("post__send", text="three")], "It failed.")
        assert model.told["outcome"] == "failure" and "MCP server post" in str(model.told["output"])
        assert sent == ["two"]
        await post.pool.close()


@asynccontextmanager
async def serving_app(app: Starlette) -> AsyncGenerator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())

    async def started() -> bool:
        return server.started

    await until(started)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize(
    ("kind", "said"), [("redirect", "Redirect"), ("bomb", "compressed"), ("endless", "more than 16 MB")]
)
async def test_a_redirect_a_compressed_and_an_endless_response_are_refused_and_the_header_goes_nowhere_else(
    mind: Mind, tmp_path: Path, kind: str, said: str
) -> None:
    async def catch(request: Request) -> Response:
        caught.append(request.headers.get("authorization", ""))
        return Response(status_code=500)

    async def attack(request: Request) -> Response:
        match kind:
            case "redirect":
                return RedirectResponse(elsewhere, status_code=307)
            case "bomb":
                packed = gzip.compress(b" " * 50_000_000)
                return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})
            case _:
                return StreamingResponse((b": " + b"x" * 100_000 + b"\n\n" for _ in range(1_000)), 200, EVENTS)

    caught: list[str] = []
    methods = ["GET", "POST", "DELETE"]
    async with (
        serving_app(Starlette(routes=[Route("/mcp", catch, methods=methods)])) as elsewhere,
        serving_app(Starlette(routes=[Route("/mcp", attack, methods=methods)])) as url,
        acting(mind, tmp_path) as post,
    ):
        fields = {"url": url, "headers": {"Authorization": "Bearer secret"}, "timeout_seconds": 20}
        post.pool = McpServerPool(servers={"post": McpServerSettings.model_validate(fields)})
        assert (await post.says("Hello.", "Hello.")).received
        assert said in post.pool.problems[0].reason and caught == []
        await post.pool.close()


async def test_a_server_that_refuses_the_header_offers_nothing_and_is_listed_as_a_problem(
    mind: Mind, tmp_path: Path
) -> None:
    async with acting(mind, tmp_path) as post, http_server([], "of-the-post") as url:
        post.pool = McpServerPool(servers={"post": McpServerSettings.model_validate({"url": url})})
        model = await post.says("Hello.", "Hello.")
        assert not [name for name in model.offered[0] if "__" in name]
        assert "error response" in post.pool.problems[0].reason
        await post.pool.close()
