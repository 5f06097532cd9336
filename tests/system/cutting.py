"""A proxy that takes requests on and, the first time of each, hangs up at the first byte of the reply."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

KEY = re.compile(rb"idempotency-key: (\S+)", re.IGNORECASE)


class Cutting:
    """Knows the keys whose reply it has cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._last: dict[asyncio.StreamWriter, bytes] = {}
        self.cut: set[bytes] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        beyond, to = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            with suppress(ConnectionError):
                await asyncio.gather(self._asking(reader, to, writer), self._answering(beyond, writer, to))
        finally:
            for end in (writer, to):
                end.transport.abort()

    async def _asking(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, of: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if found := KEY.search(data):
                self._last[of] = found[1]
            to.write(data)
            await to.drain()
        to.close()

    async def _answering(
        self, beyond: asyncio.StreamReader, writer: asyncio.StreamWriter, to: asyncio.StreamWriter
    ) -> None:
        while data := await beyond.read(65_536):
            key = self._last.get(writer)
            if key is not None and key not in self.cut:
                self.cut.add(key)
                writer.transport.abort()
                to.transport.abort()
                return
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def cutting(url: str) -> AsyncGenerator[tuple[str, Cutting]]:
    """The address of the proxy, and what it has cut."""
    proxy = Cutting(int(url.rpartition(":")[2]))
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
