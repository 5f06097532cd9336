"""A whole Newton on a database of its own, with the stand-in embedder unless a test wants the real one."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from structlog.testing import capture_logs

from newton.agent.compaction.service import CompactionService
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.completion import TokenLimits
from newton.agent.loop.turn import TurnRunner
from newton.agent.scope import AgentScope
from newton.agent.services.censors import CensorService
from newton.agent.services.memories import FactDraft, MemoryService
from newton.brain.hash_chain import ChainHeadFiles
from newton.client import Client
from newton.clock import ManualClock
from newton.cognition.assembly.render import count_header_tokens
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.db.pool import Database
from newton.dialogue import branches, sessions
from newton.dialogue.compaction.presets import parse_preset
from newton.dialogue.messages import Message
from newton.dialogue.session_close import close_session
from newton.heart.identity import user_rules
from newton.heart.identity.wish_models import find_standing_by_vector
from newton.memory.forgetting import forget
from newton.memory.vectors import EmbeddingOutbox
from newton.providers import token_counter
from newton.providers.chat import ChatModel
from newton.providers.embedding import Embedder
from newton.providers.fakes import HashEmbedder
from newton.providers.minilm import MiniLM
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.support import NOON, agent_scope, teller
from tests.system.served import OPERATOR, serving


@dataclass(slots=True)
class Mind:
    """One agent with everything it needs; tests say and ask through it."""

    db: Database
    agent_id: UUID
    clock: ManualClock
    embedder: Embedder | None
    chain_heads: ChainHeadFiles

    @property
    def contexts(self) -> ContextBuilder:
        return ContextBuilder(
            db=self.db,
            clock=self.clock,
            count_tokens=token_counter.count,
            frames=load_frames(),
            profiles=load_profiles(),
            embedder=self.embedder,
            classifier=None,
            header_tokens=count_header_tokens(token_counter.count),
        )

    @property
    def scope(self) -> AgentScope:
        return agent_scope(
            agent_id=self.agent_id,
            db=self.db,
            clock=self.clock,
            count_tokens=token_counter.count,
            embedder=self.embedder,
        )

    @property
    def verbs(self) -> MemoryService:
        return MemoryService(scope=self.scope)

    @property
    def gate(self) -> ActionGate:
        return ActionGate(scope=self.scope)

    @property
    def censors(self) -> CensorService:
        return CensorService(scope=self.scope)

    async def fetch(self, sql: str, *values: object) -> list[Any]:
        async with self.db.transaction(self.agent_id) as tx:
            return await tx.fetch(sql, *values)

    async def fetchrow(self, sql: str, *values: object) -> Any:
        async with self.db.transaction(self.agent_id) as tx:
            return await tx.fetchrow(sql, *values)

    async def fetchval(self, sql: str, *values: object) -> Any:
        async with self.db.transaction(self.agent_id) as tx:
            return await tx.fetchval(sql, *values)

    async def execute(self, sql: str, *values: object) -> None:
        async with self.db.transaction(self.agent_id) as tx:
            await tx.execute(sql, *values)

    async def facts(self) -> dict[str, str]:
        """The facts that hold now, in the order of their texts, with their trust."""
        rows = await self.fetch(
            "select m.full_text, m.trust from memory.memories as m join heart.facts as f using (agent_id, memory_id)"
            " where f.is_current order by m.full_text"
        )
        return {row["full_text"]: row["trust"] for row in rows}

    async def rules(self) -> list[str]:
        """The rules of the user that are in force."""
        async with self.db.transaction(self.agent_id) as tx:
            return [one.text for one in await user_rules.list_rules(tx, agent_id=self.agent_id)]

    async def forget(self, *ids: UUID, derived: bool = False) -> None:
        async with self.scope.write("user") as (tx, ctx):
            await forget(tx, ids, derived=derived, reason="a test", ctx=ctx)

    async def branch(self, ref: str, *, of: UUID, at: int | None = None) -> UUID:
        async with self.scope.write("user") as (tx, ctx):
            return await branches.create_branch(tx, ref, parent_id=of, from_position=at, ctx=ctx)

    async def close(self, session_id: UUID) -> int:
        """End a session; return the number of the episodes that it becomes."""
        async with self.scope.write("user") as (tx, ctx):
            return await close_session(tx, session_id=session_id, ctx=ctx)

    def turns(self, model: ChatModel | None, **limits: int) -> TurnRunner:
        usual = {"context": 2_000, "conversation": 1_000, "reply": 200, "per_day": 1_000_000}
        return TurnRunner(
            contexts=self.contexts,
            compaction=self.compacting(),
            gate=self.gate,
            model=model,
            limits=TokenLimits(**{**usual, **limits}),
            scope=self.scope,
        )

    def compacting(self, strategies: str = "default", **chosen: object) -> CompactionService:
        return CompactionService(
            preset=parse_preset(strategies),
            **chosen,  # pyright: ignore[reportArgumentType]  # named fields
            scope=self.scope,
        )

    async def context(self, text: str, *, budget: int = 8_000, **chosen: object) -> Bundle:
        request = ContextBuildRequest(agent_id=self.agent_id, input=text, tokens=budget, **chosen)  # pyright: ignore[reportArgumentType]  # named fields
        return await self.contexts.build(request)

    async def session(self, ref: str = "s1") -> UUID:
        async with self.db.transaction(self.agent_id) as tx:
            return await sessions.ensure_session(tx, agent_id=self.agent_id, ref=ref, now=self.clock.now())

    async def hear(self, *said: str, session: str = "s1", role: str = "user", name: str | None = None) -> UUID:
        """Lines of dialogue, written and embedded."""
        session_id = await self.session(session)
        at = self.clock.now()
        lines = [Message(role=role, name=name, content=text, said_at=at) for text in said]  # pyright: ignore[reportArgumentType]  # a role
        ctx = teller(self.agent_id, count_tokens=token_counter.count, trust="user", now=self.clock.now())
        async with self.db.transaction(self.agent_id) as tx:
            await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
        await self.settle()
        return session_id

    async def settle(self) -> None:
        if self.embedder:
            await EmbeddingOutbox(self.db, self.embedder, self.agent_id, find_standing=find_standing_by_vector).drain()

    async def know(self, *facts: str) -> None:
        for fact in facts:
            await self.verbs.remember(FactDraft(content=fact))
        await self.settle()


@pytest.fixture
def mind(db: Database, agent: UUID, tmp_path: Path) -> Mind:
    return Mind(db, agent, ManualClock(NOON), HashEmbedder(), ChainHeadFiles(tmp_path / "ledger", "here"))


@cache
def load_minilm() -> MiniLM:
    """The local embedder, which all tests of a process share."""
    return MiniLM()


@pytest.fixture
def minilm(mind: Mind) -> None:
    """Texts of the mind are embedded by their meaning."""
    mind.embedder = load_minilm()


def newton(mind: Mind, embedder: Embedder | None, model: ChatModel | None = None) -> AgentServices:
    settings = load({"agent": "ana"}, env={})
    return AgentServices(
        settings=settings,
        models=ModelDirectory(settings, model),
        configured_embedder=embedder,
        frames=load_frames(),
        profiles=load_profiles(),
        context_builder=mind.contexts,
        scope=agent_scope(
            agent_id=mind.agent_id, db=mind.db, clock=mind.clock, count_tokens=token_counter.count, embedder=embedder
        ),
    )


Meet = Callable[[ChatModel | None], AbstractAsyncContextManager[ChatBackend]]


@pytest.fixture(params=["here", "there"])
def meet(request: pytest.FixtureRequest, mind: Mind) -> Meet:
    """Has the agent met in this process, and behind a daemon: a conversation is the same with either."""
    return partial(behind if request.param == "there" else here, mind)


@asynccontextmanager
async def here(mind: Mind, model: ChatModel | None) -> AsyncGenerator[ChatBackend]:
    own = newton(mind, HashEmbedder())
    yield LocalAgent(newton=own, turn_runner=own.turn_runner(model))


@asynccontextmanager
async def behind(mind: Mind, model: ChatModel | None) -> AsyncGenerator[ChatBackend]:
    async with serve_client(newton(mind, HashEmbedder(), model)) as client:
        yield RemoteAgent(client=client, token_info=await client.get_token_info())


@asynccontextmanager
async def serve_http(own: AgentServices) -> AsyncGenerator[httpx2.AsyncClient]:
    """The agent behind its HTTP API, spoken to with all rights. What is logged does not get on the screen of a test."""
    with capture_logs():
        async with (
            serving(create_app(AgentRegistry(own), operator_token=OPERATOR)) as url,
            httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {OPERATOR}"}, timeout=60) as http,
        ):
            yield http


@asynccontextmanager
async def serve_client(own: AgentServices) -> AsyncGenerator[Client]:
    """The same for the client of Python programs."""
    async with serve_http(own) as http, Client(str(http.base_url), token=OPERATOR, max_attempts=1) as client:
        yield client
