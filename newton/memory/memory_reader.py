"""Memories that are read by their ids or by their place, without a search."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.as_of import read_as_of
from newton.memory.search_types import BestWindow, MemorySearch, RecallQuery, RetrievedMemory
from newton.memory.text_similarity import Evidence, TextSimilarity, replace_similarities

SQL = load("newton.memory", "memory_reader.sql")

NO_EVIDENCE = (0.0, 0.0, 0.0)
EVIDENCE_INDEX = RetrievedMemory._fields.index("similarity")
COLUMN_COUNT = len(RetrievedMemory._fields) - len((*NO_EVIDENCE, "window"))  # similarities are the columns after these


def to_memory(row: Record, evidence: Evidence = NO_EVIDENCE, window: BestWindow | None = None) -> RetrievedMemory:
    """Return a row of the query `get_memories` as a memory with this evidence."""
    return RetrievedMemory._make((*row[:EVIDENCE_INDEX], *evidence, *row[EVIDENCE_INDEX:COLUMN_COUNT], window))


async def read_found(
    tx: Tx, query: RecallQuery, kept: Mapping[UUID, Evidence], search: MemorySearch
) -> tuple[Sequence[Record], Mapping[UUID, Evidence]]:
    """Return the rows of found memories and of those that contradict them, and the evidence by the text searched for.

    The embeddings are read only if the search was by another vector than that of the text.
    """
    rows = await SQL["get_memories"].fetch_all(
        tx,
        agent_id=search.agent_id,
        memory_ids=list(kept),
        moment=search.moment,
        model_id=query.model_id if query.is_encoded and search.weights.similarity else None,
        embedding=query.search_vector,
        text_embedding=query.vector,
    )
    similarities = [
        TextSimilarity(row["memory_id"], row["search_similarity"], row["text_similarity"])
        for row in rows
        if row["text_similarity"] is not None
    ]
    return rows, replace_similarities(kept, similarities)


async def restore_as_of(
    tx: Tx, memories: Sequence[RetrievedMemory], *, agent_id: UUID, moment: datetime
) -> list[RetrievedMemory]:
    """Return the memories as they were at `moment`.

    Use counts have no history and become 0. `renewed_at` becomes None if the fact was stated again only later.
    """
    past = await read_as_of(tx, agent_id=agent_id, memory_ids=[f.memory_id for f in memories], moment=moment)
    return [
        f._replace(
            **past[f.memory_id]._asdict(),
            uses=0,
            accessed_at=None,
            renewed_at=f.renewed_at if f.renewed_at and f.renewed_at <= moment else None,
        )
        for f in memories
        if f.memory_id in past
    ]


async def fetch_memories(
    tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, moment: datetime | None
) -> list[RetrievedMemory]:
    """Return these memories in order, without relevance; with `moment`, as they were then. Unknown ids are skipped."""
    key = {"agent_id": agent_id, "memory_ids": list(memory_ids), "moment": moment}
    rows = await SQL["get_memories"].fetch_all(tx, **key, model_id=None, embedding=None, text_embedding=None)
    found = {row[0]: to_memory(row) for row in rows}
    ordered = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return ordered if moment is None else await restore_as_of(tx, ordered, agent_id=agent_id, moment=moment)


async def fetch_preceding(
    tx: Tx, *, agent_id: UUID, thread_id: UUID, position: int, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return up to `limit` messages before a position of a thread, the nearest first, without relevance."""
    rows = await SQL["list_messages_before"].fetch_all(
        tx, agent_id=agent_id, thread_id=thread_id, position=position, max_rows=limit
    )
    return tuple(RetrievedMemory(*row) for row in rows)


async def fetch_pending_decisions(
    tx: Tx, *, agent_id: UUID, since: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return the latest pending decisions that were made since a moment, the oldest of them first."""
    rows = await SQL["list_open_decisions"].fetch_all(tx, agent_id=agent_id, since=since, max_rows=limit)
    return tuple(RetrievedMemory(*row) for row in reversed(rows))


async def fetch_pending_decisions_as_of(
    tx: Tx, *, agent_id: UUID, since: datetime, moment: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return the latest decisions made since `since` that were pending at `moment`, the oldest of them first."""
    query = SQL["list_open_decisions_at"]
    rows = await query.fetch_all(tx, agent_id=agent_id, since=since, moment=moment, max_rows=limit)
    found = [RetrievedMemory(*row) for row in reversed(rows)]
    return tuple(await restore_as_of(tx, found, agent_id=agent_id, moment=moment))
