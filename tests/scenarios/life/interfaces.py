"""One person who speaks by the terminal, an OpenAI client, an MCP host or an HTTP client."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import openai
from mcp.client import Client as McpClient

from newton.client import Client
from newton.runtime.chat_backend.remote import RemoteAgent
from tests.scenarios.life.story import Interface
from tests.system.served import OPERATOR
from tests.system.test_mcp import speaking, told


class Voice(Protocol):
    """How a line is said in a session."""

    async def say(self, session: str, text: str) -> None: ...


@dataclass(slots=True)
class Terminal:
    backend: RemoteAgent

    async def say(self, session: str, text: str) -> None:
        async for _ in self.backend.run_turn(session, text):
            pass


@dataclass(slots=True)
class OpenAI:
    """Sends the whole conversation each time, as such clients do."""

    client: openai.AsyncOpenAI
    talks: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    async def say(self, session: str, text: str) -> None:
        talk = self.talks.setdefault(session, [])
        talk.append({"role": "user", "content": text})
        headers = {"X-Newton-Session": session}
        reply = await self.client.chat.completions.create(model="newton", messages=talk, extra_headers=headers)
        talk.append({"role": "assistant", "content": reply.choices[0].message.content})


@dataclass(slots=True)
class McpHost:
    """Asks for the context of each message, and hands over what was said."""

    client: McpClient

    async def say(self, session: str, text: str) -> None:
        await told(self.client, "context", input=text)
        await told(self.client, "note_exchange", user=text, assistant="I see.", session=session)


@dataclass(slots=True)
class HttpClient:
    client: Client

    async def say(self, session: str, text: str) -> None:
        async for _ in self.client.run_turn(session, text):
            pass


@asynccontextmanager
async def open_voices(url: str, agent: str) -> AsyncGenerator[tuple[Client, Mapping[Interface, Voice]]]:
    """Yield the HTTP client of the agent, and all voices."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(Client(url, token=OPERATOR, agent=agent))
        mcp = await stack.enter_async_context(speaking(url, OPERATOR, **{"X-Newton-Agent": agent}))
        completions = await stack.enter_async_context(
            openai.AsyncOpenAI(
                base_url=f"{url}/v1", api_key=OPERATOR, default_headers={"X-Newton-Agent": agent}, timeout=60
            )
        )
        terminal = RemoteAgent(client=http, token_info=await http.get_token_info())
        yield (
            http,
            {
                "chat": Terminal(terminal),
                "openai": OpenAI(completions),
                "mcp": McpHost(mcp),
                "http": HttpClient(http),
            },
        )
