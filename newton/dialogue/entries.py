"""Compactions in the database: kept whole or not at all, and dropped when a person wants the lines back."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.view import Entry
from newton.errors import NotFoundError
from newton.ids import new_id
from newton.memory.memory import Teller

SQL = load("newton.dialogue", "entries.sql")


class Run(NamedTuple):
    """How a strategy's run went: its milliseconds, the tokens of the view before and after, and what went wrong."""

    strategy: str
    at: datetime
    duration_ms: float
    before: int
    after: int
    error: str | None = None


class Tally(NamedTuple):
    """How the runs of a strategy went: how many, how many changed nothing, the tokens that they saved, and their time
    in milliseconds; in how many sessions, and when last."""

    strategy: str
    runs: int
    failed: int
    saved: int
    mean_ms: float
    most_ms: float
    sessions: int
    last_at: datetime


class Listed(NamedTuple):
    """An entry, and when it was dropped, if it was."""

    entry: Entry
    restored_at: datetime | None


async def keep(tx: Tx, entries: Sequence[Entry], *, agent_id: UUID, session_id: UUID, seen: log.Seen) -> bool:
    """Writes the entries, unless others have come or gone there since `seen` was read, or something was forgotten: then
    nothing, and False."""
    await log.lock(tx, agent_id=agent_id, session_id=session_id)
    end = max(entry.last for entry in entries)
    now = await log.seen(tx, agent_id=agent_id, session_id=session_id)
    if now.forgotten != seen.forgotten or _until(end, now) != _until(end, seen):
        return False
    await insert(tx, entries, agent_id=agent_id, session_id=session_id)
    return True


def _until(end: int, seen: log.Seen) -> set[UUID]:
    return {one.entry_id for one in seen.entries if one.first <= end}


async def insert(tx: Tx, entries: Sequence[Entry], *, agent_id: UUID, session_id: UUID) -> None:
    """Writes entries for whoever holds the session's lock."""
    if entries:
        rows = json.dumps([_row(entry) for entry in entries])
        await SQL["insert_entries"].run(tx, agent_id=agent_id, session_id=session_id, entries=rows)


async def listed(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Listed]:
    """Every entry of a session by its place, the outer ones first."""
    rows = await SQL["list_entries"].all(tx, agent_id=agent_id, session_id=session_id)
    return [Listed(log.entry(row), row["restored_at"]) for row in rows]


async def restore(tx: Tx, entry_id: UUID, *, session_id: UUID, ctx: Teller) -> list[UUID]:
    """Drops an entry and those that cover it, so that its lines are shown again, and stay; returns what was dropped.

    Raises NotFoundError when the session has no such entry.
    """
    await log.lock(tx, agent_id=ctx.agent_id, session_id=session_id)
    known = await listed(tx, agent_id=ctx.agent_id, session_id=session_id)
    if entry_id not in {one.entry.entry_id for one in known}:
        raise NotFoundError(
            f"The session has no entry {entry_id}.", hint="`newton sessions entries SESSION` lists them."
        )
    rows = await SQL["restore_entry"].all(
        tx, agent_id=ctx.agent_id, session_id=session_id, entry_id=entry_id, now=ctx.now, origin=ctx.origin
    )
    return [row["entry_id"] for row in rows]


async def record(tx: Tx, run: Run, *, agent_id: UUID, session_id: UUID) -> None:
    """Notes how a run went."""
    await SQL["record_run"].run(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        run_id=new_id(),
        strategy=run.strategy,
        started_at=run.at,
        duration_ms=run.duration_ms,
        tokens_before=run.before,
        tokens_after=run.after,
        error=run.error,
    )


async def tallies(tx: Tx, *, agent_id: UUID, session_id: UUID | None) -> list[Tally]:
    """How compactions went, by strategy; of one session, or of all."""
    return [Tally(*row) for row in await SQL["summarize_runs"].all(tx, agent_id=agent_id, session_id=session_id)]


def _row(entry: Entry) -> dict[str, object]:
    return {
        "entry_id": str(entry.entry_id),
        "kind": entry.kind,
        "first_position": entry.first,
        "last_position": entry.last,
        "text": entry.text,
        "tokens": entry.tokens,
        "before": entry.before,
        "strategy": entry.strategy,
        "prompt": entry.prompt,
        "model": entry.model,
        "made_at": entry.made_at.isoformat(),
    }
