"""Queue of finished conversations from which facts have not been extracted yet."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Role
from newton.memory.memory import Trust, WriteContext, lowest_trust
from newton.memory.quarantine import UNTRUSTED_TIERS

SQL = load("newton.dialogue", "extraction_queue.sql")

MAX_MESSAGES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeMessage:
    """A message of an episode that is not text of a tool or the web, with the memory created from it."""

    role: Role
    name: str | None
    content: str
    said_at: datetime
    memory_id: UUID
    trust: Trust
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLines:
    """The messages of an episode, without text of tools and the web.

    An episode without a session has one message, its text. `trust` is the lowest trust of all messages, those of tools
    included. It limits the trust of what a model extracts.
    """

    memory_id: UUID
    source: str
    ended_at: datetime
    messages: tuple[EpisodeMessage, ...]
    trust: Trust

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Return the messages as pairs of speaker and text."""
        return [(message.name or message.role.capitalize(), message.content) for message in self.messages]


async def find_unread(
    tx: Tx, *, agent_id: UUID, limit: int, ended_before: datetime | None = None
) -> list[EpisodeLines]:
    """Return the oldest conversations from which nothing was extracted yet; those for which the model failed are last.

    With `ended_before`, return only those that ended by then, and also episodes without a session.
    """
    rows = await SQL["list_unextracted"].fetch_all(tx, agent_id=agent_id, max_rows=limit, ended_before=ended_before)
    return [await _load_lines(tx, agent_id, episode) for episode in rows]


async def mark_read(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the extraction of facts from a conversation as done. Return False if another worker has done so already."""
    row = await SQL["mark_extracted"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


async def mark_parsed(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the extraction as done by the classifier only, because the model failed.

    Return False if it was marked before.
    """
    row = await SQL["mark_parsed"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


async def _load_lines(tx: Tx, agent_id: UUID, episode: Record) -> EpisodeLines:
    rows = await _load_messages(tx, agent_id, episode)
    # a reply that only quotes memories has no memory of its own and is not extracted again
    trusted = [row for row in rows if row["memory_id"] and row["trust"] not in UNTRUSTED_TIERS]
    return EpisodeLines(
        memory_id=episode["memory_id"],
        source=f"session {episode['session']}" if episode["session"] else "episode",
        ended_at=episode["ended_at"],
        messages=tuple(EpisodeMessage(**row) for row in trusted),
        trust=lowest_trust(["agent", *(row["trust"] for row in rows if row["trust"])]),
    )


async def _load_messages(tx: Tx, agent_id: UUID, episode: Record) -> list[Record]:
    if episode["session_id"] is None:
        return await SQL["get_episode_text"].fetch_all(tx, agent_id=agent_id, memory_id=episode["memory_id"])
    last = episode["last_position"]
    first = max(episode["first_position"], last - MAX_MESSAGES + 1)
    span = {"session_id": episode["session_id"], "first": first, "last": last}
    return await SQL["list_messages"].fetch_all(tx, agent_id=agent_id, **span)
