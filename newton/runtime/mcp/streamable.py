"""MCP over HTTP as the daemon serves it at /mcp, with the same tokens."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from newton.errors import NewtonError
from newton.runtime.api import problems
from newton.runtime.api.caller import BEARER, caller

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
CALLER = "newton.caller"  # under which a request says who makes it


class Door:
    """An ASGI application. The protocol is loaded with the first request: that takes a second or two."""

    def __init__(self) -> None:
        self._opening = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._living: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            scope[CALLER] = await caller(request, await BEARER(request), request.headers.get("X-Newton-Agent"))
        except NewtonError as error:
            await problems.answer(error, scope["path"])(scope, receive, send)
            return
        await (await self._open()).handle_request(scope, receive, send)

    async def close(self) -> None:
        """Ends what it has begun."""
        if self._living:
            self._living.cancel()
            with suppress(asyncio.CancelledError):
                await self._living

    async def _open(self) -> "StreamableHTTPSessionManager":
        async with self._opening:
            manager = self._manager
            if manager is None:
                module = await asyncio.to_thread(import_module, "newton.runtime.mcp.server")
                manager, ready = module.over_http(CALLER), asyncio.Event()
                self._living = asyncio.create_task(_lives(manager, ready))
                await ready.wait()
                self._manager = manager
            return manager


@asynccontextmanager
async def mounted(app: FastAPI) -> AsyncGenerator[None]:
    """The application serves MCP too, until the end of the block."""
    door = Door()
    # without sessions there is nothing to listen to or to end: who tries is answered 405, as the protocol has it
    app.router.routes.append(Route(PATH, door, methods=["POST"], include_in_schema=False))
    try:
        yield
    finally:
        await door.close()


async def _lives(manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
    async with manager.run():
        ready.set()
        await asyncio.Event().wait()
