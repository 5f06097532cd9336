"""A server of HTTP for tests, within their process, that ends at once."""

import asyncio
import socket

import uvicorn

from newton.runtime.daemon import UvicornServer
from tests.support import until


class PromptServer(UvicornServer):
    """A server that ends at once: uvicorn looks ten times a second whether to end, and then waits as long again."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.leaving = asyncio.Event()

    async def main_loop(self) -> None:
        ticking = asyncio.create_task(super().main_loop())
        await self.leaving.wait()
        ticking.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in (*self.servers, *(sockets or [])):
            door.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()

        async def is_idle() -> bool:
            return not self.server_state.connections and not self.server_state.tasks

        await until(is_idle)
