"""Storage of compaction entries (texts shown in place of messages), and of the runs that created them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.compaction.presets import StrategyFeedback
from newton.dialogue.view import CompactionEntry
from newton.errors import NotFoundError
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.dialogue.compaction", "entry_store.sql")


class CompactionRun(NamedTuple):
    """A run of a strategy: its duration, the tokens for the model before and after it, and those that summaries used.

    `error` is None if it succeeded. If only the model failed, it is the failure, and the summaries were extracted.
    """

    strategy: str
    at: datetime
    duration_ms: float
    tokens_before: int
    tokens_after: int
    tokens_spent: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStats:
    """The compactions of one strategy: runs, tokens saved and spent on a model, and durations in milliseconds.

    `failed` counts the runs without effect, and those whose summaries were extracted because the model failed. A person
    restored the messages of `restored` of its `entries`; a message of `reread` of them was read in full again. The
    strategy spares `factor` times as many recent turns as its preset says, because of such wrong cuts.
    """

    strategy: str
    runs: int
    failed: int
    saved: int
    spent: int
    mean_ms: float
    most_ms: float
    sessions: int
    last_at: datetime
    entries: int
    restored: int
    reread: int
    factor: float = 1.0


class EntryStatus(NamedTuple):
    """A compaction entry, and the time when a person restored its messages; None while it is in use."""

    entry: CompactionEntry
    restored_at: datetime | None


async def save_if_unchanged(
    tx: Tx, entries: Sequence[CompactionEntry], *, agent_id: UUID, session_id: UUID, sources: log.ViewSources
) -> bool:
    """Store compaction entries and return True; if the view (what a model is sent) has changed, return False.

    The view has changed if, since `sources` was read, a memory was deleted, or an entry that begins before the end of
    the new ones was added or removed.
    """
    await log.lock_session(tx, agent_id=agent_id, session_id=session_id)
    end = max(entry.last for entry in entries)
    now = await log.load_sources(tx, agent_id=agent_id, session_id=session_id)
    if now.forgotten_count != sources.forgotten_count or _entries_until(end, now) != _entries_until(end, sources):
        return False
    await insert(tx, entries, agent_id=agent_id, session_id=session_id)
    return True


def _entries_until(end: int, sources: log.ViewSources) -> set[UUID]:
    return {one.entry_id for one in sources.entries if one.first <= end}


async def insert(tx: Tx, entries: Sequence[CompactionEntry], *, agent_id: UUID, session_id: UUID) -> None:
    """Store compaction entries without checks. The caller must hold the session lock."""
    if entries:
        rows = json.dumps([_to_row(entry) for entry in entries])
        await SQL["insert_entries"].execute(tx, agent_id=agent_id, session_id=session_id, entries=rows)


async def list_entries(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[EntryStatus]:
    """Return all compaction entries of a session, also restored ones, by the position of their first message.

    A merged entry comes before the smaller entries whose messages it covers.
    """
    rows = await SQL["list_entries"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [EntryStatus(log.to_entry(row), row["restored_at"]) for row in rows]


async def restore(tx: Tx, entry_id: UUID, *, session_id: UUID, ctx: WriteContext) -> list[UUID]:
    """Drop a compaction entry, so that a model receives its messages again; return the ids of the dropped entries.

    Entries that cover the messages of this entry are dropped as well. Compaction does not replace the messages again.
    Raises NotFoundError if the session has no such entry.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    entries = await list_entries(tx, agent_id=ctx.agent_id, session_id=session_id)
    if entry_id not in {one.entry.entry_id for one in entries}:
        hint = "`newton sessions compactions SESSION` lists the compaction entries."
        raise NotFoundError(f"The session has no compaction entry {entry_id}.", hint=hint)
    rows = await SQL["restore_entry"].fetch_all(
        tx, agent_id=ctx.agent_id, session_id=session_id, entry_id=entry_id, now=ctx.now, origin=ctx.origin
    )
    return [row["entry_id"] for row in rows]


async def record_run(tx: Tx, run: CompactionRun, *, agent_id: UUID, session_id: UUID) -> None:
    """Store the record of a run of a compaction strategy."""
    key = {"agent_id": agent_id, "session_id": session_id, "run_id": new_id()}
    await SQL["record_run"].execute(tx, **key, **run._asdict())


async def list_run_stats(tx: Tx, *, agent_id: UUID, session_id: UUID | None) -> list[CompactionStats]:
    """Return the statistics of the runs of each compaction strategy in a session; for None, in all sessions."""
    rows = await SQL["summarize_runs"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    factors = {one.strategy: one.factor for one in await list_feedback(tx, agent_id=agent_id)}
    return [CompactionStats(**dict(row), factor=factors.get(row["strategy"], 1.0)) for row in rows]


async def list_feedback(tx: Tx, *, agent_id: UUID) -> list[StrategyFeedback]:
    """Return how often each strategy cut wrongly, and what its model saved and cost, in all sessions of an agent."""
    rows = await SQL["list_feedback"].fetch_all(tx, agent_id=agent_id)
    return [StrategyFeedback(**dict(row)) for row in rows]


async def record_rereads(tx: Tx, memory_ids: Sequence[UUID], *, ctx: WriteContext) -> None:
    """Record that the messages of these memories were read in full, for the compaction entries that replace them."""
    if memory_ids:
        await SQL["record_rereads"].execute(
            tx, agent_id=ctx.agent_id, memory_ids=list(memory_ids), now=ctx.now, origin=ctx.origin
        )


def _to_row(entry: CompactionEntry) -> Mapping[str, object]:
    return asdict(entry) | {"entry_id": str(entry.entry_id), "made_at": entry.made_at.isoformat()}
