"""Queue of conversations from which facts have not been extracted yet: episodes, and messages of open sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Role
from newton.memory.memory import UNTRUSTED_TIERS, Trust, WriteContext

SQL = load("newton.dialogue", "extraction_queue.sql")

MAX_MESSAGES = 200
RECENT_MEMORIES = 200  # whose sessions are read after a turn; a job reads the others


class SessionRange(NamedTuple):
    """A range of messages of a session, from the position `first` to `last`."""

    session_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeMessage:
    """A message that is not text of a tool or the web, with the memory created from it.

    `is_parsed` is True if its statements were stored before.
    """

    role: Role
    name: str | None
    content: str
    said_at: datetime
    memory_id: UUID
    trust: Trust
    origin: str
    is_parsed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLines:
    """The messages of an episode, without text of tools and the web.

    An episode without a session has one message, its text. `covered` is the range of messages of the session.
    """

    memory_id: UUID
    covered: SessionRange | None
    source: str
    ended_at: datetime
    messages: tuple[EpisodeMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLines:
    """The messages of a session that no episode includes and that no facts were extracted from.

    `parsed_position` is the position of the last message before them that was read.
    """

    covered: SessionRange
    parsed_position: int
    source: str
    messages: tuple[EpisodeMessage, ...]


async def find_unread(
    tx: Tx, *, agent_id: UUID, limit: int, ended_before: datetime | None = None, only_unparsed: bool = False
) -> list[EpisodeLines]:
    """Return the oldest conversations from which nothing was extracted yet; those that the classifier read are last.

    With `ended_before`, return only those that ended by then, and also episodes without a session. With
    `only_unparsed`, return only those that the classifier has not read.
    """
    rows = await SQL["list_unextracted"].fetch_all(
        tx, agent_id=agent_id, max_rows=limit, ended_before=ended_before, only_unparsed=only_unparsed
    )
    return [await _load_lines(tx, agent_id, episode) for episode in rows]


async def mark_read(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the extraction of facts from a conversation as done. Return False if another worker has done so already."""
    row = await SQL["mark_extracted"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


async def mark_parsed(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark the statements of a conversation as stored by the classifier; the model may still read the conversation.

    Return False if it was marked before.
    """
    row = await SQL["mark_parsed"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


async def find_open(tx: Tx, *, agent_id: UUID, limit: int, only_recent: bool = False) -> list[OpenLines]:
    """Return the unread messages of up to `limit` sessions that go on, MAX_MESSAGES of each.

    With `only_recent`, only sessions of the RECENT_MEMORIES latest memories are looked at.
    """
    recent = RECENT_MEMORIES if only_recent else None
    rows = await SQL["list_open_sessions"].fetch_all(
        tx, agent_id=agent_id, recent=recent, max_rows=limit, max_messages=MAX_MESSAGES
    )
    return [
        OpenLines(
            covered=SessionRange(row["session_id"], row["first_position"], row["last_position"]),
            parsed_position=row["parsed_position"],
            source=_describe_source(row["session"]),
            messages=_select_trusted(await _load_messages(tx, agent_id, row)),
        )
        for row in rows
    ]


async def mark_open_read(tx: Tx, lines: OpenLines, *, ctx: WriteContext) -> bool:
    """Mark the messages of a session as read. Return False if another worker has read them meanwhile."""
    session_id, _, last = lines.covered
    row = await SQL["advance_parsed_position"].fetch_one(
        tx, agent_id=ctx.agent_id, session_id=session_id, former=lines.parsed_position, position=last
    )
    return row is not None


async def list_stated_facts(tx: Tx, ids: Sequence[UUID], *, agent_id: UUID) -> list[UUID]:
    """Return the stored facts that messages with these memories state, also those that were known before."""
    rows = await SQL["list_stated_facts"].fetch_all(tx, agent_id=agent_id, message_ids=ids, refs=list(map(str, ids)))
    return list({row["memory_id"]: None for row in rows})


async def _load_lines(tx: Tx, agent_id: UUID, episode: Record) -> EpisodeLines:
    rows = await _load_messages(tx, agent_id, episode)
    session_id = episode["session_id"]
    return EpisodeLines(
        memory_id=episode["memory_id"],
        covered=session_id and SessionRange(session_id, episode["first_position"], episode["last_position"]),
        source=_describe_source(episode["session"]),
        ended_at=episode["ended_at"],
        messages=_select_trusted(rows),
    )


async def _load_messages(tx: Tx, agent_id: UUID, episode: Record) -> list[Record]:
    if episode["session_id"] is None:
        return await SQL["get_episode_text"].fetch_all(tx, agent_id=agent_id, memory_id=episode["memory_id"])
    last = episode["last_position"]
    first = max(episode["first_position"], last - MAX_MESSAGES + 1)
    span = {"session_id": episode["session_id"], "first": first, "last": last}
    return await SQL["list_messages"].fetch_all(tx, agent_id=agent_id, **span)


def _describe_source(session: str | None) -> str:
    return f"session {session}" if session else "episode"


def _select_trusted(rows: Sequence[Record]) -> tuple[EpisodeMessage, ...]:
    """Return the messages without text of tools and the web.

    A reply that only quotes memories has no memory of its own and is not extracted again.
    """
    trusted = [row for row in rows if row["memory_id"] and row["trust"] not in UNTRUSTED_TIERS]
    return tuple(EpisodeMessage(**row) for row in trusted)
