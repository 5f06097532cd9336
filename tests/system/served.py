"""The daemon's API within the process of a test: over a real socket of loopback, on a real database."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import httpx2
from fastapi import FastAPI

from newton.client import Client
from newton.clock import SystemClock
from newton.db.pool import Database
from newton.heart.speakers import Speaker
from newton.ids import derive_agent_id, new_id
from newton.memory import agents
from newton.providers.embedding import Embedder
from newton.providers.fakes import HashEmbedder
from newton.runtime import daemon
from newton.runtime.access import tokens
from newton.runtime.access.tokens import TokenDraft, TokenScope, UserPolicy
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.daemon_state import DaemonState
from newton.runtime.dashboard.routes import mount_dashboard
from newton.runtime.mcp.streamable_http import mount_mcp
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.db.world import contexts
from tests.prompt_server import PromptServer
from tests.support import agent_scope, count, until

OPERATOR = "nwo_the-operators-token-of-these-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Where it is spoken to, and what stands behind it."""

    url: str
    db: Database
    app: FastAPI

    def http(self, token: str = OPERATOR, **headers: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=self.url, headers={"Authorization": f"Bearer {token}", **headers}, timeout=60, verify=False
        )

    def client(self, token: str, *, url: str | None = None) -> Client:
        return Client(url or self.url, token=token)

    async def token(
        self,
        agent: str,
        scope: TokenScope = "admin",
        *,
        name: str | None = None,
        expires_at: datetime | None = None,
        users: UserPolicy | None = None,
        speaker: Speaker = "app",
    ) -> str:
        """A token of the agent, which is begun if it is new."""
        now = SystemClock().now()
        owner = await agents.get_or_create_agent(self.db, agent, now=now)
        async with self.db.transaction(owner) as tx:
            made = now if expires_at is None else min(now, expires_at - timedelta(seconds=1))
            draft = TokenDraft(name or new_id().hex, scope, expires_at, users, speaker=speaker)
            return await tokens.create_token(tx, draft, agent_id=owner, now=made)

    async def strange(self, agent: str) -> list[dict[str, str]]:
        """Headers that open nothing, each with the status that is `due`."""
        now, owner = SystemClock().now(), derive_agent_id(agent)
        mine = await self.token(agent)
        revoked = await self.token(agent, "write", name="lost")
        async with self.db.transaction(owner) as tx:
            await tokens.revoke_token(tx, "lost", agent_id=owner, now=now)
        expired = await self.token(agent, "read", expires_at=now - timedelta(hours=1))
        shapes = [expired, revoked, f"{mine[:-4]}AAA=", f"{mine}x", mine.lower(), "nwt_", OPERATOR[:-1]]
        wrong = [*(f"Bearer {shape}" for shape in shapes), "", "Bearer", f"Basic {mine}", mine]
        foreign = ({"Origin": "https://elsewhere.example"}, {"Host": "elsewhere.example"}, {"X-Newton-Agent": "nobody"})
        return [
            *({"due": "401", "Authorization": one} for one in wrong),
            *({"due": "403", "Authorization": f"Bearer {mine}", **one} for one in foreign),
        ]

    async def rows(self, agent: str, table: str) -> int:
        async with self.db.transaction(derive_agent_id(agent)) as tx:
            return await tx.fetchval(f"select count(*) from {table}")


@asynccontextmanager
async def served(
    db: Database, home: Path, *, embedder: Embedder | None = None, **settings: object
) -> AsyncGenerator[Api]:
    """Such an API with MCP beside it, ended as the daemon ends it."""
    embedder = embedder or HashEmbedder()
    made = replace(contexts(db), embedder=embedder)
    owner = await agents.get_or_create_agent(db, "default", now=SystemClock().now())
    chosen = load({"data_dir": home, **settings})
    newton = AgentServices(
        settings=chosen,
        models=ModelDirectory(chosen),
        configured_embedder=embedder,
        frames=made.frames,
        profiles=made.profiles,
        context_builder=made,
        scope=agent_scope(agent_id=owner, db=db, clock=SystemClock(), count_tokens=count, embedder=embedder),
    )
    state = DaemonState.capture(chosen, now=SystemClock().now())
    app = mount_dashboard(create_app(AgentRegistry(newton), operator_token=OPERATOR, state=state))
    try:
        async with serving(app) as url:
            yield Api(url=url, db=db, app=app)
    finally:
        await newton.readings.cancel()
        await newton.compactions.cancel()


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[str]:
    """Where the application is spoken to, ended as the daemon ends it."""
    listen = daemon.ListenOptions(port=0)
    door = daemon.bind_socket(listen)
    server = PromptServer(daemon.build_uvicorn_config(app, listen))
    serving = asyncio.create_task(server.serve(sockets=[door]))
    hearing = asyncio.create_task(app.state.broadcaster.listen(app.state.agents.default.scope.db))

    async def started() -> bool:
        return server.started

    await until(started)
    try:
        async with mount_mcp(app):
            yield listen.url(door)
    finally:
        hearing.cancel()
        app.state.broadcaster.close()
        server.leaving.set()
        await serving


async def each_once(client: Client, many: int) -> None:
    """So many things to be done, a third of each kind, of which none is known already by its words."""
    for start in range(0, many, 30):
        places = range(start, min(start + 30, many))
        await asyncio.gather(*(_done(client, n) for n in places))


async def _done(client: Client, n: int) -> None:
    match n % 3:
        case 0:
            await client.push_task(f"goal {n}", session=f"work {n // 60}")  # tasks stand so deep at most
        case 1:
            await client.append_messages("talk", [{"role": "user", "content": "the same"}])
        case _:
            reasons = [{"kind": "analysis", "text": "fast"}]
            await client.decide(f"Use Redis for the cache of service {n}", confidence=0.8, reasons=reasons)


async def effects(api: Api) -> list[int]:
    """How many of each kind were done, and how many answers were kept."""
    tables = ("dialogue.tasks", "dialogue.messages", "brain.decisions", "runtime.idempotency_keys")
    return [await api.rows("ana", table) for table in tables]
