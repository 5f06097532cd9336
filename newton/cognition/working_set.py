"""Storage of the working set of a session: the messages and memories that it used, up to a token capacity.

It is a cache: an evicted memory stays in long-term memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from asyncpg import Record

from newton.cognition.assembly.working_context import SEPARATOR_TOKENS, EvictionItem, WorkingContext, select_evictions
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import NotFoundError
from newton.memory.memory import derive_importance
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RetrievedMemory

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.cognition", "working_set.sql")

EQUAL_RELEVANCE = 1.0  # without a query
LABEL_FIELDS = (
    "renewed_at",
    "valid_to",
    "attribute",
    "contradicted_ids",
    "changed",
    "said_at",
    "word_trust",
)  # of facts and messages


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionScope:
    """A session, the current time, and the capacity of the session's working set in tokens."""

    agent_id: UUID
    session_id: UUID
    now: datetime
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStats:
    """Usage of a profile: the number of contexts, items and tokens, and the sum of the items' ages in hours."""

    profile: str
    contexts: int
    items: int
    tokens: int
    total_age_hours: float
    last_used_at: datetime


async def add_memories(tx: Tx, memory_ids: Sequence[UUID], *, scope: SessionScope) -> list[UUID]:
    """Add memories that were shown or read to the working set, or renew their access time.

    Return the ids of the memories evicted for lack of capacity.
    """
    row = await _add_items(tx, scope, memory_ids=memory_ids) if memory_ids else None
    return await _evict_surplus(tx, row["tokens"], scope=scope) if row else []


async def add_messages(tx: Tx, positions: Sequence[int], *, scope: SessionScope) -> list[UUID]:
    """Add the memories of the messages at `positions` to the working set. Return their ids, oldest first."""
    row = await _add_items(tx, scope, positions=positions) if positions else None
    if row is None:
        return []
    await _evict_surplus(tx, row["tokens"], scope=scope)
    return row["memory_ids"]


async def _add_items(
    tx: Tx, scope: SessionScope, *, memory_ids: Sequence[UUID] = (), positions: Sequence[int] = ()
) -> Record | None:
    return await SQL["add_items"].fetch_one(
        tx,
        agent_id=scope.agent_id,
        session_id=scope.session_id,
        memory_ids=list(memory_ids),
        positions=list(positions),
        now=scope.now,
        separator_tokens=SEPARATOR_TOKENS,
    )


async def _evict_surplus(tx: Tx, tokens: int, *, scope: SessionScope) -> list[UUID]:
    """Remove memories from a working set of `tokens` that exceeds its capacity; return their ids."""
    if tokens <= scope.capacity:
        return []
    keys = {"agent_id": scope.agent_id, "session_id": scope.session_id}
    items = [
        EvictionItem(f.memory_id, f.effective_importance, f.accessed_at or scope.now, f.summary_tokens)
        for f in await list_memories(tx, **keys)
    ]
    evicted = select_evictions(items, capacity=scope.capacity, now=scope.now)
    await SQL["remove_items"].execute(tx, **keys, memory_ids=evicted)
    return evicted


async def list_memories(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[RetrievedMemory]:
    """Return the memories of the working set.

    `created_at` is the time when a memory entered the set; `accessed_at` and `uses` are those within the session.
    """
    rows = await SQL["list_items"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    memories = [_to_memory(row) for row in rows]
    ids = [found.memory_id for found in memories if found.kind in ("fact", "exchange", "relation")]
    labelled = {f.memory_id: f for f in await fetch_memories(tx, ids, agent_id=agent_id, moment=None)}
    return [
        found._replace(**{name: getattr(labelled[found.memory_id], name) for name in LABEL_FIELDS})
        if found.memory_id in labelled
        else found
        for found in memories
    ]


async def load_vectors(tx: Tx, *, agent_id: UUID, session_id: UUID, model_id: UUID) -> "dict[UUID, Vector]":
    """Return the stored embeddings of the memories in the working set, by id."""
    rows = await SQL["list_vectors"].fetch_all(tx, agent_id=agent_id, session_id=session_id, model_id=model_id)
    return {row["memory_id"]: row["embedding"].to_numpy() for row in rows}


async def expire_working_sets(tx: Tx, *, agent_id: UUID, before: datetime) -> int:
    """Delete the working sets not used since `before`. Return their number."""
    return len(await SQL["delete_idle"].fetch_all(tx, agent_id=agent_id, before=before))


async def find_last_session(tx: Tx, *, agent_id: UUID) -> tuple[UUID, str]:
    """Return id and name of the session whose working memory was used last. Raises NotFoundError if none was."""
    row = await SQL["get_last_session"].fetch_one(tx, agent_id=agent_id)
    if row is None:
        raise NotFoundError(
            "No session has a working memory.", hint="Start a session with `newton chat` or `newton ask`."
        )
    return row["session_id"], row["ref"]


async def record_strategy_use(tx: Tx, context: WorkingContext, strategy: str, *, agent_id: UUID, now: datetime) -> None:
    """Count one use of the profile `strategy`, with the number, tokens and ages of the selected items."""
    ages = [max((now - item.scored.found.created_at).total_seconds(), 0.0) / 3_600 for item in context.items]
    await SQL["record_profile_use"].execute(
        tx, agent_id=agent_id, profile=strategy, items=len(ages), tokens=context.tokens, age_hours=sum(ages), now=now
    )


async def list_profile_stats(tx: Tx, *, agent_id: UUID) -> list[ProfileStats]:
    """Return usage statistics of each profile that ranked contexts of working memory, the most used first."""
    return [ProfileStats(**row) for row in await SQL["list_profile_stats"].fetch_all(tx, agent_id=agent_id)]


def _to_memory(row: Record) -> RetrievedMemory:
    """Convert a row to a memory.

    If no importance is stored, it is computed from all uses of the memory, not only those within the session.
    """
    *columns, total_uses = row
    found = RetrievedMemory(*columns)._replace(relevance=EQUAL_RELEVANCE)
    if found.importance is not None:
        return found
    return found._replace(importance=derive_importance(found.kind, found.state, found.outcome, total_uses))
