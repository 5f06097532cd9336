"""A client of the OpenAI protocol before Newton, and a strict server of models behind it."""

import base64
import struct
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import openai

from newton.db.pool import Database, Tx
from newton.ids import derive_agent_id
from tests.model_servers import ModelServer, serving_models
from tests.system.served import Api, served


def png(width: int, height: int) -> str:
    """A picture as a data URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


@dataclass(frozen=True, slots=True)
class Line:
    """A client of Newton, and the server of models behind Newton."""

    client: openai.AsyncOpenAI
    behind: ModelServer
    api: Api
    agent: str

    async def say(self, *messages: Any, session: str | None = None, **options: Any) -> Any:
        headers = {"X-Newton-Session": session} if session else {}
        create: Any = self.client.chat.completions.create
        return await create(**{"model": "newton", "messages": list(messages), "extra_headers": headers, **options})

    async def stream(self, *messages: Any, **options: Any) -> list[Any]:
        return [chunk async for chunk in await self.say(*messages, stream=True, **options)]

    @asynccontextmanager
    async def stored(self) -> AsyncGenerator[Tx]:
        async with self.api.db.transaction(derive_agent_id(self.agent)) as tx:
            yield tx

    async def remembered(self) -> str:
        """Every text that is stored of this agent: messages, memories and contexts."""
        tables = {"dialogue.messages": "content", "memory.memories": "summary", "cognition.bundles": "input"}
        found: list[str] = []
        async with self.stored() as tx:
            for table, column in tables.items():
                found += [str(row[0]) for row in await tx.fetch(f"select {column} from {table}")]
        return "\n".join(found)


@asynccontextmanager
async def lined(server: ModelServer, db: Database, home: Path, **settings: object) -> AsyncGenerator[Line]:
    async with (
        serving_models(server),
        served(db, home, **cast("dict[str, Any]", {**server.settings, **settings})) as api,
    ):
        token = await api.token("default")
        http = openai.DefaultAsyncHttpxClient(verify=False)
        url = f"{api.url}/v1"
        client = openai.AsyncOpenAI(base_url=url, api_key=token, max_retries=0, timeout=60, http_client=http)
        async with client:
            yield Line(client, server, api, "default")
