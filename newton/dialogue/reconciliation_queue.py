"""Queue of messages that the reconciling call has not read yet, by session, and of episodes without a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.heart.reconciliation.reconciling_types import LineSource, NewLine
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, WriteContext

SQL = load("newton.dialogue", "reconciliation_queue.sql")

MAX_NEW_LINES = 80  # messages that are loaded at once; the window of the model decides how many are sent
CONTEXT_MESSAGES = 6  # loaded before the first unread message; up to three are sent
IMPORT_ORIGIN = "import"
AFTER_FOREIGN = "assistant after foreign text"
NO_MEMORY = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSession:
    """A session with unread messages of users, from `first_position` on.

    `reconciled_position` is the stored position, by which a worker notices that another one was faster.
    `failed_readings` counts the calls in a row for its next messages that failed or had an unreadable answer.
    `recorded_at` is the time at which the newest of its unread messages that were counted was stored.
    """

    session_id: UUID
    ref: str
    first_position: int
    reconciled_position: int
    failed_readings: int
    recorded_at: datetime


class UnreadLines(NamedTuple):
    """Lines of a session in order, those already read first, and the position of each new message by its line.

    `last_position` is that of the last loaded message.
    """

    lines: tuple[NewLine, ...]
    positions: tuple[int, ...]
    last_position: int


async def list_due_sessions(
    tx: Tx, *, agent_id: UUID, limit: int, idle_since: datetime, min_lines: int = 1, recent: int | None = None
) -> list[DueSession]:
    """Return the sessions with at least `min_lines` unread messages of users, or whose newest is from `idle_since`.

    Sessions that were closed since their first unread message are also returned. With `recent`, only the sessions of so
    many latest memories are looked at.
    """
    rows = await SQL["list_due_sessions"].fetch_all(
        tx, agent_id=agent_id, recent=recent, min_lines=min_lines, idle_since=idle_since, max_rows=limit
    )
    return [DueSession(**row) for row in rows]


async def load_lines(tx: Tx, session: DueSession, *, user_name: str, agent_id: UUID) -> UnreadLines:
    """Return the next unread lines of a session, after a few that were read. Notices of Newton are left out."""
    first, session_id = session.first_position, session.session_id
    rows = await SQL["list_lines"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        first=first - CONTEXT_MESSAGES,
        last=first + MAX_NEW_LINES - 1,
    )
    is_alone = await log.has_one_speaker(tx, agent_id=agent_id, session_id=session_id)
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
    """Return the episode that includes a message; None while the session goes on."""
    row = await SQL["find_episode"].fetch_one(tx, agent_id=agent_id, session_id=session_id, position=position)
    return row["memory_id"] if row else None


async def list_told_episodes(
    tx: Tx, *, agent_id: UUID, ended_before: datetime, user_name: str, limit: int
) -> Sequence[NewLine]:
    """Return unread episodes without a session as lines of those who told them. `memory_id` is that of the episode."""
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
    source, kind = _find_source(row)
    trust = row["trust"] or ("agent" if row["role"] == "assistant" else "tool")
    name = row["name"] or (user_name if is_alone else "")
    return NewLine(
        text=row["content"],
        speaker=name or "user",
        source=source,
        is_user=source == "person" and is_alone and trust in PERSON_TIERS,
        said_at=row["said_at"],
        trust=trust,
        origin=row["origin"] or "",
        memory_id=row["memory_id"] or NO_MEMORY,
        is_read=is_read,
        is_imported=(row["origin"] or "").startswith(IMPORT_ORIGIN),
        foreign_kind=kind,
        is_hidden=row["is_hidden"],
    )


def _find_source(row: Record) -> tuple[LineSource, str]:
    """Return whose text a message is, and what it is if it is foreign. A reply after foreign text is foreign."""
    is_foreign = row["trust"] in UNTRUSTED_TIERS
    if row["role"] == "user" and row["memory_id"] and not is_foreign:
        return "person", ""
    if row["role"] == "assistant":
        return ("foreign", AFTER_FOREIGN) if is_foreign else ("assistant", "")
    return "foreign", row["name"] or ("web page" if row["trust"] == "web" else "")
