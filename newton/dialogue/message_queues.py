"""Queues of messages that wait for background work: extraction of facts, reconciliation by a model, shortening."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import session_speakers
from newton.dialogue.messages import Role
from newton.heart.reconciliation.reconciling_types import LineSource, NewLine
from newton.memory import store
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, ShortForms, TokenCounter, Trust, WriteContext, digest
from newton.memory.representations import SUMMARY_TOKENS, to_bullet
from newton.memory.store import MemoryUpdate
from newton.text.time_expressions import move_to_day

SQL = load("newton.dialogue", "message_queues.sql")

MAX_MESSAGES = 200
EARLIER_MESSAGES = 16  # read ones before those of an open session, which these may correct or continue
RECENT_MEMORIES = 200  # whose sessions are read after a turn; a job reads the others


class SessionRange(NamedTuple):
    """A range of messages of a session, from the position `first` to `last`."""

    session_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeMessage:
    """A message of a person or the assistant, with the memory created from it.

    It `is_parsed` if the statements in it were stored before. `said_on` is the day of the speaker, in their time zone.
    `is_group` means that the agent also hears others, `is_reported` that it passes on what somebody else than the user
    says.
    """

    role: Role
    name: str | None
    content: str
    said_at: datetime
    memory_id: UUID
    trust: Trust
    origin: str
    is_parsed: bool
    said_on: str | None = None
    is_group: bool = False
    is_reported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLines:
    """The messages of an episode (an ended conversation), without text of tools and the web.

    `covered` are their positions in the session. An episode without a session has one message, its text.
    """

    memory_id: UUID
    covered: SessionRange | None
    source: str
    ended_at: datetime
    messages: tuple[EpisodeMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLines:
    """The messages of an open session that no episode includes and that no facts were extracted from.

    A few that were read precede them, marked as parsed.
    `parsed_position` is the position of the last message before them that was read.
    """

    covered: SessionRange
    parsed_position: int
    source: str
    messages: tuple[EpisodeMessage, ...]


async def find_unread(
    tx: Tx, *, agent_id: UUID, limit: int, ended_before: datetime | None = None, only_unparsed: bool = False
) -> list[EpisodeLines]:
    """Return the oldest ended conversations (episodes) without extracted facts.

    Those that the classifier has read come last. With `ended_before`, return only those that ended by then, and also
    episodes without a session. With `only_unparsed`, return only those that the classifier has not read.
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
    """Return up to MAX_MESSAGES unread messages of each of up to `limit` sessions that have not ended.

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
            source=describe_source(row["session"]),
            messages=_select_trusted(await _load_messages(tx, agent_id, row, before=EARLIER_MESSAGES)),
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
    """Return the ids of the facts that messages with these memories state, also of those that were known before."""
    rows = await SQL["list_stated_facts"].fetch_all(tx, agent_id=agent_id, message_ids=ids, refs=list(map(str, ids)))
    return list({row["memory_id"]: None for row in rows})


async def _load_lines(tx: Tx, agent_id: UUID, episode: Record) -> EpisodeLines:
    rows = await _load_messages(tx, agent_id, episode)
    session_id = episode["session_id"]
    return EpisodeLines(
        memory_id=episode["memory_id"],
        covered=session_id and SessionRange(session_id, episode["first_position"], episode["last_position"]),
        source=describe_source(episode["session"]),
        ended_at=episode["ended_at"],
        messages=_select_trusted(rows),
    )


async def _load_messages(tx: Tx, agent_id: UUID, episode: Record, *, before: int = 0) -> list[Record]:
    """Return the messages of an episode, after up to `before` messages before it, which count as read."""
    if episode["session_id"] is None:
        return await SQL["get_episode_text"].fetch_all(tx, agent_id=agent_id, memory_id=episode["memory_id"])
    last = episode["last_position"]
    first = max(episode["first_position"], last - MAX_MESSAGES + 1)
    span = {"session_id": episode["session_id"], "first": first - before, "last": last}
    read_position = first - 1 if before else -1
    return await SQL["list_messages"].fetch_all(tx, agent_id=agent_id, **span, read_position=read_position)


def describe_source(session: str | None) -> str:
    return f"session {session}" if session else "episode"


def _select_trusted(rows: Sequence[Record]) -> tuple[EpisodeMessage, ...]:
    """Return the messages without text of tools and the web.

    A reply that only quotes memories has no memory of its own and is not extracted again.
    """
    trusted = [row for row in rows if row["memory_id"] and row["trust"] not in UNTRUSTED_TIERS]
    return tuple(EpisodeMessage(**row) for row in trusted)


MAX_NEW_LINES = 80  # messages that are loaded at once; the window of the model decides how many are sent
CONTEXT_MESSAGES = 6  # loaded before the first unread message; up to three are sent
IMPORT_ORIGIN = "import"
AFTER_FOREIGN = "assistant after foreign text"
NO_MEMORY = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSession:
    """A session with unread messages of users, from `first_position` on.

    `reconciled_position` is the last read position as stored; if it has changed, another worker was faster.
    `failed_readings` counts the consecutive model calls for its next messages that failed or had an unreadable answer.
    `recorded_at` is the time at which the newest of the unread messages that make it due was stored.
    """

    session_id: UUID
    ref: str
    first_position: int
    reconciled_position: int
    failed_readings: int
    recorded_at: datetime


class UnreadLines(NamedTuple):
    """The next lines of a session for a model to read, after a few that were read, and the position of each.

    `last_position` is that of the last loaded message, which may be none of the lines.
    """

    lines: tuple[NewLine, ...]
    positions: tuple[int, ...]
    last_position: int


async def list_due_sessions(
    tx: Tx, *, agent_id: UUID, limit: int, idle_since: datetime, min_lines: int = 1, recent: int | None = None
) -> list[DueSession]:
    """Return the sessions whose new messages a model must read.

    They have `min_lines` unread messages of users, got the last of them by `idle_since`, or were closed after one. With
    `recent`, only sessions of the `recent` latest memories are searched.
    """
    rows = await SQL["list_due_sessions"].fetch_all(
        tx, agent_id=agent_id, recent=recent, min_lines=min_lines, idle_since=idle_since, max_rows=limit
    )
    return [DueSession(**row) for row in rows]


async def load_lines(tx: Tx, session: DueSession, *, user_name: str, agent_id: UUID) -> UnreadLines:
    """Return the next unread lines of a session, after a few that were read. Notices of Newton are left out.

    A line without a name is said by `user_name` if only one person speaks in the session.
    """
    first, session_id = session.first_position, session.session_id
    start, last = first - CONTEXT_MESSAGES, first + MAX_NEW_LINES - 1
    rows = await SQL["list_lines"].fetch_all(tx, agent_id=agent_id, session_id=session_id, first=start, last=last)
    names = [user_name] if user_name else []
    is_alone = await session_speakers.has_one_speaker(tx, agent_id=agent_id, session_id=session_id, user_names=names)
    spoken = [row for row in rows if not row["is_notice"] and row["content"].strip()]
    lines = [_to_line(row, user_name, is_alone=is_alone, is_read=row["position"] < first) for row in spoken]
    last = max((row["position"] for row in rows), default=first - 1)
    return UnreadLines(tuple(lines), tuple(row["position"] for row in spoken), last)


async def advance(tx: Tx, session: DueSession, position: int, *, ctx: WriteContext) -> bool:
    """Mark the messages up to a position as read. Return False if another worker has read them meanwhile."""
    row = await SQL["advance_position"].fetch_one(
        tx,
        agent_id=ctx.agent_id,
        session_id=session.session_id,
        former=session.reconciled_position,
        position=position,
    )
    return row is not None


async def count_failed_reading(tx: Tx, session: DueSession, *, agent_id: UUID) -> None:
    """Count that the call for the next messages of a session failed, or that its answer was unreadable."""
    await SQL["count_failed_reading"].execute(tx, agent_id=agent_id, session_id=session.session_id)


async def find_episode(tx: Tx, session_id: UUID, position: int, *, agent_id: UUID) -> UUID | None:
    """Return the id of the episode that includes a message; None until the session becomes an episode."""
    row = await SQL["find_episode"].fetch_one(tx, agent_id=agent_id, session_id=session_id, position=position)
    return row["memory_id"] if row else None


async def list_told_episodes(
    tx: Tx, *, agent_id: UUID, ended_before: datetime, user_name: str, limit: int
) -> Sequence[NewLine]:
    """Return the unread episodes that were stored as a text, without a session: each is a line said by `user_name`."""
    rows = await SQL["list_told_episodes"].fetch_all(tx, agent_id=agent_id, ended_before=ended_before, max_rows=limit)
    return [
        NewLine(
            text=row["content"],
            speaker=user_name,
            source="person" if row["trust"] in PERSON_TIERS else "foreign",
            is_user=False,
            said_at=row["said_at"],
            trust=row["trust"],
            origin=row["origin"],
            memory_id=row["memory_id"],
        )
        for row in rows
    ]


async def finish_told_episode(tx: Tx, memory_id: UUID, *, ctx: WriteContext) -> bool:
    """Mark an episode without a session as read. Return False if another worker has read it meanwhile."""
    row = await SQL["finish_told_episode"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, now=ctx.now)
    return row is not None


def _to_line(row: Record, user_name: str, *, is_alone: bool, is_read: bool) -> NewLine:
    """Convert a row to a line for the model that reconciles; `is_alone` means that one person speaks in the session."""
    source, kind = _find_source(row)
    trust = row["trust"] or ("agent" if row["role"] == "assistant" else "tool")
    trust = trust if is_alone else session_speakers.limit_trust(trust, row["name"], user_name)
    name = row["name"] or (user_name if is_alone else "")
    return NewLine(
        text=row["content"],
        speaker=name or "user",
        source=source,
        is_user=source == "person" and is_alone and trust in PERSON_TIERS,
        said_at=move_to_day(row["said_at"], row["said_on"]),
        trust=trust,
        origin=row["origin"] or "",
        memory_id=row["memory_id"] or NO_MEMORY,
        is_read=is_read,
        is_imported=(row["origin"] or "").startswith(IMPORT_ORIGIN),
        foreign_kind=kind,
        is_hidden=row["is_hidden"],
    )


def _find_source(row: Record) -> tuple[LineSource, str]:
    """Return the source of a message, and for a foreign text a description. A reply after foreign text is foreign."""
    is_foreign = row["trust"] in UNTRUSTED_TIERS
    if row["role"] == "user" and row["memory_id"] and not is_foreign:
        return "person", ""
    if row["role"] == "assistant":
        return ("foreign", AFTER_FOREIGN) if is_foreign else ("assistant", "")
    return "foreign", row["name"] or ("web page" if row["trust"] == "web" else "")


MIN_USES = 6  # in contexts; a summary saves up to 70 tokens each time it is shown, and its call takes 430


class LongMessage(NamedTuple):
    """A message that is longer than its short form in a context, with its whole text.

    `micro` is the shortest form, of about 20 tokens.
    """

    memory_id: UUID
    micro: str
    micro_tokens: int
    speaker: str
    content: str
    tokens: int
    said_at: datetime

    @property
    def prefix(self) -> str:
        """Return date and speaker, with a note that the text is shortened."""
        return f"[{self.said_at:%Y-%m-%d}] {self.speaker}, in short: "


async def find(tx: Tx, *, agent_id: UUID, limit: int) -> list[LongMessage]:
    """Return the long messages without a summary that contexts have often shown in short, the most shown first."""
    limits = {"max_rows": limit, "form_tokens": SUMMARY_TOKENS, "min_uses": MIN_USES}
    return [LongMessage(*row) for row in await SQL["list_long_messages"].fetch_all(tx, agent_id=agent_id, **limits)]


async def find_summary(tx: Tx, content: str, *, agent_id: UUID, max_tokens: int) -> tuple[bool, str | None]:
    """Return (True, summary) if a summary of this text in `max_tokens` is stored, else (False, None).

    The summary is None if the model's answer was unusable.
    """
    key = {"agent_id": agent_id, "content_hash": digest(content), "max_tokens": max_tokens}
    row = await SQL["find_by_hash"].fetch_one(tx, **key)
    return (True, row["text"]) if row else (False, None)


async def save_summary(
    tx: Tx, content: str, summary: str | None, *, memory_id: UUID, max_tokens: int, ctx: WriteContext
) -> None:
    """Store the summary of a text, None if the model's answer was unusable.

    The summary is deleted together with the memory `memory_id`.
    """
    key = {"agent_id": ctx.agent_id, "content_hash": digest(content), "max_tokens": max_tokens}
    await SQL["insert_summary"].execute(tx, **key, memory_id=memory_id, text=summary, now=ctx.now)


def token_budget(message: LongMessage, *, count_tokens: TokenCounter) -> int:
    """Return the maximum tokens of a summary: a third of the message, at most those of a short form. Pure."""
    return min(message.tokens // 3, SUMMARY_TOKENS - count_tokens(to_bullet(message.prefix)))


async def apply_summaries(tx: Tx, summaries: Sequence[tuple[LongMessage, str]], *, ctx: WriteContext) -> None:
    """Replace the short forms of long messages by their summaries. Texts and search index do not change."""
    updates: list[MemoryUpdate] = []
    for message, text in summaries:
        summary = message.prefix + text
        tokens = {"micro_tokens": message.micro_tokens, "summary_tokens": ctx.count_tokens(to_bullet(summary))}
        forms = ShortForms(micro=message.micro, summary=summary, **tokens)
        updates.append(MemoryUpdate(memory_id=message.memory_id, forms=forms))
    await store.update_memories(tx, updates, ctx=ctx)
