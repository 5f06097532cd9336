"""What tests share: a moment, and short ways to say things."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import fields
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import settings

from newton import ids
from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.agent.scope import AgentScope
from newton.client import ApiError
from newton.clock import Clock, ManualClock
from newton.db.pool import Database, Tx
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.lifecycle.transition_rules import LifecycleThresholds
from newton.memory.memory import TokenCounter, Trust, WriteContext
from newton.providers.chat import ChatMessage
from newton.providers.embedding import Embedder
from newton.runtime.settings_mapping import build_thresholds
from newton.settings import load

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANA = ids.derive_agent_id("ana")
BEN = ids.derive_agent_id("ben")
DEFAULT_THRESHOLDS = build_thresholds(load({}, env={}))
EXAMPLES = 12  # of each property; scripts/test-slow tries twenty times as many


def count(text: str) -> int:
    """A stand-in for a tokenizer where its exact figures do not matter: a token every four characters."""
    return max(1, (len(text) + 3) // 4)


def has_code(code: str) -> Callable[[ApiError], bool]:
    """For `pytest.raises`: that an error of the client has this code."""
    return lambda error: error.code == code


def examples(usual: int) -> settings:
    """So many examples of a property that is dear to try; in the slow run as many times more as everywhere."""
    return settings(max_examples=usual * settings().max_examples // EXAMPLES)


def teller(
    agent_id: UUID = ANA,
    *,
    trust: Trust = "user",
    origin: str = "test",
    now: datetime = NOON,
    count_tokens: TokenCounter = count,
) -> WriteContext:
    return WriteContext(agent_id=agent_id, now=now, origin=origin, trust=trust, count_tokens=count_tokens)


def agent_scope(
    *,
    agent_id: UUID,
    db: Database,
    clock: Clock | None = None,
    count_tokens: TokenCounter = count,
    thresholds: LifecycleThresholds | None = None,
    embedder: Embedder | None = None,
    origin: str = "test",
    trust: Trust = "user",
) -> AgentScope:
    return AgentScope(
        agent_id=agent_id,
        db=db,
        clock=clock or ManualClock(NOON),
        count_tokens=count_tokens,
        thresholds=thresholds or DEFAULT_THRESHOLDS,
        embedder=embedder,
        origin=origin,
        trust=trust,
    )


def ground(ctx: WriteContext | None = None) -> LifecycleContext:
    ctx = ctx or teller()
    own = {field.name: getattr(ctx, field.name) for field in fields(ctx)}
    return LifecycleContext(**own, thresholds=DEFAULT_THRESHOLDS)


async def until(holds: Callable[[], Awaitable[bool]], *, seconds: float = 60) -> None:
    """Return soon after the condition holds; it is looked at less often the longer it takes, at last every 50 ms.

    Raises TimeoutError when it never does."""
    delay = 0.0
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(delay)
            delay = min(delay + 0.001, 0.05)


@asynccontextmanager
async def part(tx: Tx) -> AsyncGenerator[None]:
    """A part of a unit of work: when it fails it is undone by itself, and the rest may go on."""
    await tx.execute("savepoint part")
    end = "rollback to savepoint part"
    try:
        yield
        end = "release savepoint part"
    finally:
        await tx.execute(end)


def apart(prompt: Sequence[ChatMessage]) -> tuple[str, list[tuple[str, str]]]:
    """What a model was told of what is known, and what was said to it with who said it."""
    system, *talk = prompt
    parts = [(one, *one.text.rpartition(INPUT_HEADER)) for one in talk]
    known = "".join(known for _, known, _, _ in parts)
    return system.text + known, [(one.role, said) for one, _, _, said in parts]
