"""The MCP server of `newton mcp` without a daemon: it opens the agent in this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import httpx2
from starlette.types import Receive, Scope, Send

from newton.runtime.access.tokens import TokenScope
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.bootstrap import open_newton
from newton.runtime.mcp.server import build_session_manager
from newton.runtime.tools.tool_sets import parse_tool_sets
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

CALLER_KEY = "newton.caller"


@dataclass(frozen=True, slots=True)
class LocalMcpCaller:
    """The MCP client that started this process, its session and its tools. It has the rights of every token scope."""

    newton: AgentServices
    session: str | None
    tool_sets: frozenset[str]

    @property
    def deadline(self) -> None:
        return None

    def has_scope(self, scope: TokenScope) -> bool:
        return True


@asynccontextmanager
async def open_local_server(
    settings: Settings, session: str | None, tools: str | None, on_notice: Callable[[str], None]
) -> AsyncGenerator[httpx2.AsyncClient]:
    """Open the agent, and yield an HTTP client that calls an MCP server in this process, without a network.

    `session` is the default session of tool calls, and `tools` the sets of tools to offer. At the begin, in the
    background, and at the end, facts are extracted and pending memories embedded, as the jobs of a daemon do.
    """
    async with open_newton(settings, long_running=True, on_notice=on_notice) as opened:
        newton = await AgentRegistry(opened).enter_project(
            opened, settings.project, on_new=lambda name: on_notice(f"Created project {name}.")
        )
        caller = LocalMcpCaller(newton, session, parse_tool_sets(tools))
        manager = build_session_manager(CALLER_KEY)

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            await manager.handle_request({**scope, CALLER_KEY: caller}, receive, send)

        earlier = asyncio.ensure_future(_process_pending(newton))  # must not delay the handshake
        try:
            async with (
                manager.run(),
                httpx2.AsyncClient(
                    transport=httpx2.ASGITransport(serve), base_url="http://127.0.0.1", timeout=None
                ) as client,
            ):
                yield client
        finally:
            earlier.cancel()
            with suppress(asyncio.CancelledError):
                await earlier
        await _process_pending(newton)


async def _process_pending(newton: AgentServices) -> None:
    maintenance = newton.maintenance("mcp")
    await maintenance.learn_if_possible()
    await maintenance.process_pending()
