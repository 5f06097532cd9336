"""The queue of conversations to extract from: the trusted messages of each closed episode."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Trust, WriteContext, lowest_trust
from newton.memory.quarantine import UNTRUSTED_TIERS

SQL = load("newton.dialogue", "extraction_queue.sql")

MAX_MESSAGES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLines:
    """The messages of one episode as pairs of speaker and text.

    `trust` is the lowest of all its messages, including tools', and limits what is extracted."""

    memory_id: UUID
    session: str
    ended_at: datetime
    lines: tuple[tuple[str, str], ...]
    trust: Trust


async def find_unread(tx: Tx, *, agent_id: UUID, limit: int) -> list[EpisodeLines]:
    """Return the oldest conversations that were not extracted yet."""
    episodes = await SQL["list_unextracted"].fetch_all(tx, agent_id=agent_id, max_rows=limit)
    return [await _load_lines(tx, agent_id, episode) for episode in episodes]


async def mark_read(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the conversation as extracted; return False if another worker did so first."""
    row = await SQL["mark_extracted"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


async def _load_lines(tx: Tx, agent_id: UUID, episode: Record) -> EpisodeLines:
    session_id, last = episode["session_id"], episode["last_position"]
    first = max(episode["first_position"], last - MAX_MESSAGES + 1)
    rows = await SQL["list_messages"].fetch_all(tx, agent_id=agent_id, session_id=session_id, first=first, last=last)
    # a reply that only quotes memories has no memory of its own and is not extracted again
    trusted = [row for row in rows if row["memory_id"] and row["trust"] not in UNTRUSTED_TIERS]
    return EpisodeLines(
        memory_id=episode["memory_id"],
        session=episode["session"],
        ended_at=episode["ended_at"],
        lines=tuple((row["name"] or row["role"].capitalize(), row["content"]) for row in trusted),
        trust=lowest_trust(["agent", *(row["trust"] for row in rows if row["trust"])]),
    )
