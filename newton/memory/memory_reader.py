"""Reading of memories by id, position or time, now or as of a past moment, without a search by meaning."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Kind, ShortForms
from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import BestWindow, MemorySearch, RecallQuery, RetrievedMemory
from newton.text.time_expressions import TimeRange

SQL = load("newton.memory", "memory_reader.sql")


class MemoryAsOf(NamedTuple):
    """The changeable fields of a memory as they were at a past moment.

    Use counts are left out: they have no history.
    """

    state: str
    quarantined: bool
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    outcome: str | None
    confirmed_at: datetime | None


async def read_as_of(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, MemoryAsOf]:
    """Return the memories as they were at `moment`, by id. Memories created later are left out."""
    rows = await SQL["read_as_of"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids, moment=moment)
    return {row[0]: MemoryAsOf(*row[1:]) for row in rows}


async def read_form_history(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, list[ShortForms]]:
    """Return all versions of the short forms of memories, by id; the current version is last.

    Deleted memories are left out.
    """
    versions: defaultdict[UUID, list[ShortForms]] = defaultdict(list)
    for memory_id, *forms in await SQL["list_versions"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids):
        versions[memory_id].append(ShortForms(*forms))
    return versions


SAME_COSINE = 1e-4  # cosines that differ less are equal but for rounding

Evidence: TypeAlias = tuple[float, float, float]  # cosine similarity, lexical share and relevance of a memory


class TextSimilarity(NamedTuple):
    """Two cosines of a memory's text: with the vector that was searched for, and with that of the query text.

    They differ if the search used the vector of an encoder of questions.
    """

    memory_id: UUID
    search: float
    text: float


def replace_similarities(
    evidence: Mapping[UUID, Evidence], similarities: Iterable[TextSimilarity]
) -> dict[UUID, Evidence]:
    """Return the evidence with similarities to the query text in place of those to the vector that was searched for.

    A memory found by another text than its own (a window of it, or a fact that it replaced) keeps its similarity. The
    evidence of a memory is its similarity, lexical share and relevance, rounded to single precision.
    """
    replaced = dict(evidence)
    for memory_id, search, text in similarities:
        known = evidence.get(memory_id)
        if known and known[0] <= search + SAME_COSINE:
            replaced[memory_id] = SINGLE_PRECISION.unpack(SINGLE_PRECISION.pack(text, *known[1:]))
    return replaced


# Kinds that match by their own time. The time of a fact or a procedure is unrelated to its content.
DATED_KINDS: frozenset[Kind] = frozenset({"exchange", "episode", "event", "decision"})


async def find_in_range(
    tx: Tx, ranges: Sequence[TimeRange], search_arguments: Mapping[str, object]
) -> dict[UUID, Record]:
    """Return rows of the memories that occurred in the ranges or mention a time in them, by id.

    Of each kind they are the most important, then the latest. `search_arguments` is `MemorySearch.query_arguments`.
    """
    rows = await SQL["find_in_ranges"].fetch_all(tx, **search_arguments, **_range_arguments(ranges))
    return {row[0]: row for row in rows}


async def filter_in_range(
    tx: Tx, memory_ids: Sequence[UUID], ranges: Sequence[TimeRange], *, agent_id: UUID
) -> frozenset[UUID]:
    """Return the ids of those of the memories that are in any of the time ranges."""
    rows = await SQL["filter_by_ranges"].fetch_all(
        tx, agent_id=agent_id, memory_ids=memory_ids, **_range_arguments(ranges)
    )
    return frozenset(row[0] for row in rows)


def _range_arguments(ranges: Sequence[TimeRange]) -> dict[str, object]:
    return {"starts_at": [span.start for span in ranges], "ends_at": [span.end for span in ranges]}


NO_EVIDENCE = (0.0, 0.0, 0.0)
EVIDENCE_INDEX = RetrievedMemory._fields.index("similarity")
# The columns after these are similarities.
COLUMN_COUNT = len(RetrievedMemory._fields) - len((*NO_EVIDENCE, "window", "is_inherited"))


def to_memory(row: Record, evidence: Evidence = NO_EVIDENCE, window: BestWindow | None = None) -> RetrievedMemory:
    """Convert a row of the SQL query `get_memories` to a memory.

    `evidence` is its similarity, lexical share and relevance.
    """
    return RetrievedMemory._make((*row[:EVIDENCE_INDEX], *evidence, *row[EVIDENCE_INDEX:COLUMN_COUNT], window, False))


async def read_found(
    tx: Tx, query: RecallQuery, kept: Mapping[UUID, Evidence], search: MemorySearch
) -> tuple[Sequence[Record], Mapping[UUID, Evidence]]:
    """Return the rows of the memories `kept` and of facts that contradict them, and the evidence for the query text.

    `kept` is the evidence of the memories found. Embeddings are read only if the vector of the search differs from that
    of the query text.
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
    """Return the memories as they were at `moment`; those that did not exist are left out.

    Use counts have no history and become 0. `renewed_at` becomes None if the fact was stated again only later.
    """
    past = await read_as_of(tx, agent_id=agent_id, memory_ids=[memory.memory_id for memory in memories], moment=moment)
    return [
        memory._replace(
            **past[memory.memory_id]._asdict(),
            uses=0,
            accessed_at=None,
            renewed_at=memory.renewed_at if memory.renewed_at and memory.renewed_at <= moment else None,
        )
        for memory in memories
        if memory.memory_id in past
    ]


async def fetch_memories(
    tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, moment: datetime | None
) -> list[RetrievedMemory]:
    """Return these memories in the order of the ids, without relevance; unknown ids are skipped.

    With a `moment`, they are returned as they were then.
    """
    key = {"agent_id": agent_id, "memory_ids": list(memory_ids), "moment": moment}
    rows = await SQL["get_memories"].fetch_all(tx, **key, model_id=None, embedding=None, text_embedding=None)
    found = {row[0]: to_memory(row) for row in rows}
    ordered = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return ordered if moment is None else await restore_as_of(tx, ordered, agent_id=agent_id, moment=moment)


async def fetch_preceding(
    tx: Tx, *, agent_id: UUID, thread_id: UUID, position: int, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return up to `limit` messages before a position of a session (`thread_id`), the nearest first; no relevance."""
    rows = await SQL["list_messages_before"].fetch_all(
        tx, agent_id=agent_id, thread_id=thread_id, position=position, max_rows=limit
    )
    return tuple(RetrievedMemory(*row) for row in rows)


async def fetch_pending_decisions(
    tx: Tx, *, agent_id: UUID, since: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return the latest `limit` decisions made since `since` that have no outcome, the oldest of them first."""
    rows = await SQL["list_open_decisions"].fetch_all(tx, agent_id=agent_id, since=since, max_rows=limit)
    return tuple(RetrievedMemory(*row) for row in reversed(rows))


async def fetch_pending_decisions_as_of(
    tx: Tx, *, agent_id: UUID, since: datetime, moment: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """Return the latest `limit` decisions made since `since` that had no outcome at `moment`, the oldest first."""
    query = SQL["list_open_decisions_at"]
    rows = await query.fetch_all(tx, agent_id=agent_id, since=since, moment=moment, max_rows=limit)
    found = [RetrievedMemory(*row) for row in reversed(rows)]
    return tuple(await restore_as_of(tx, found, agent_id=agent_id, moment=moment))
