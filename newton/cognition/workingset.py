"""The working set of a session at rest: what was said, shown and read in it, up to a capacity in tokens.

It is a cache: whatever leaves it stays in memory as it was, and no decision of what to keep loses anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from asyncpg import Record

from newton.cognition.working import JOINER, Assembled, Held, evicted
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import NotFoundError
from newton.memory.importance import derived
from newton.memory.recall import Found

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.cognition", "workingset.sql")

UNASKED = (0.0, 0.0, 1.0)  # nothing is searched for: no cosine, no words, and a relevance that is the same for all


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """One session at a moment, with the tokens that its working set may hold."""

    agent_id: UUID
    session_id: UUID
    now: datetime
    capacity: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a strategy has made so far: contexts, items and tokens in them, and the ages of the items in hours."""

    strategy: str
    contexts: int
    items: int
    tokens: int
    hours: float
    last_at: datetime


async def hold(tx: Tx, memory_ids: Sequence[UUID], *, at: Sitting) -> list[UUID]:
    """These were shown or read: they are at hand, used last and once more. Returns what had to leave for them."""
    if not memory_ids:
        return []
    where = {"agent_id": at.agent_id, "session_id": at.session_id}
    await SQL["add_items"].run(tx, **where, memory_ids=list(memory_ids), now=at.now)
    size = await SQL["sum_tokens"].one(tx, **where, separator_tokens=JOINER)
    if size is None or size["tokens"] <= at.capacity:
        return []
    held = [Held(f.memory_id, f.matters, f.accessed_at or at.now, f.summary_tokens) for f in await _held(tx, **where)]
    gone = evicted(held, capacity=at.capacity, now=at.now)
    await SQL["remove_items"].run(tx, **where, memory_ids=gone)
    return gone


async def hold_lines(tx: Tx, places: Sequence[int], *, at: Sitting) -> list[UUID]:
    """The lines at these places of the session were said. Returns the memories that they became."""
    rows = await SQL["find_message_memories"].all(
        tx, agent_id=at.agent_id, session_id=at.session_id, positions=list(places)
    )
    memory_ids = [row["memory_id"] for row in rows]
    await hold(tx, memory_ids, at=at)
    return memory_ids


async def held(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Found]:
    """What is at hand: `created_at` is when it came, `accessed_at` and `uses` are those of the session."""
    return await _held(tx, agent_id=agent_id, session_id=session_id)


async def vectors(tx: Tx, *, agent_id: UUID, session_id: UUID, model_id: UUID) -> "dict[UUID, Vector]":
    """The stored vectors of what is at hand."""
    rows = await SQL["list_vectors"].all(tx, agent_id=agent_id, session_id=session_id, model_id=model_id)
    return {row["memory_id"]: row["embedding"].to_numpy() for row in rows}


async def lapse(tx: Tx, *, agent_id: UUID, before: datetime) -> int:
    """Empties the working sets of sessions in which nothing was touched from that moment on; of how many."""
    return len(await SQL["delete_idle"].all(tx, agent_id=agent_id, before=before))


async def last_session(tx: Tx, *, agent_id: UUID) -> tuple[UUID, str]:
    """The session that was at work last, and its name. Raises NotFoundError."""
    row = await SQL["get_last_session"].one(tx, agent_id=agent_id)
    if row is None:
        raise NotFoundError("No session has anything at hand.", hint="Say something: `newton chat` or `newton ask`.")
    return row["session_id"], row["ref"]


async def note(tx: Tx, made: Assembled, strategy: str, *, agent_id: UUID, now: datetime) -> None:
    """Counts that the strategy was used, with the ages of what it chose."""
    ages = [max((now - chosen.scored.found.created_at).total_seconds(), 0.0) / 3_600 for chosen in made.items]
    await SQL["record_profile_use"].run(
        tx,
        agent_id=agent_id,
        profile=strategy,
        items=len(ages),
        tokens=made.tokens,
        age_hours=sum(ages),
        now=now,
    )


async def strategies(tx: Tx, *, agent_id: UUID) -> list[Used]:
    """What each strategy has made so far, the most used first."""
    return [Used(**row) for row in await SQL["list_profile_stats"].all(tx, agent_id=agent_id)]


async def _held(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Found]:
    return [_found(row) for row in await SQL["list_items"].all(tx, agent_id=agent_id, session_id=session_id)]


def _found(row: Record) -> Found:
    """Its importance follows from its whole record, not from what the session alone knows of it."""
    *columns, uses_in_all = row
    found = Found._make((*columns, *UNASKED))
    if found.importance is not None:
        return found
    return found._replace(importance=derived(found.kind, found.state, found.outcome, uses_in_all))
