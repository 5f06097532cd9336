"""Recall: exact nearest vectors and exact BM25 side by side, and what neighbours lend. No model but the embedder."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.concurrency import task_group
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory import time_search
from newton.memory.as_of import read_as_of
from newton.memory.importance import derive_importance
from newton.memory.memory import ARCHIVED, PAST_STATES, Kind, Trust, past_reason
from newton.memory.question_detection import has_only_questions, is_only_question
from newton.memory.ranking import (
    DEFAULT_WEIGHTS,
    RankingWeights,
    SearchHit,
    evidence_score,
    find_neighbours,
    select_best,
)
from newton.memory.reembedding import read_active_model
from newton.memory.representations import DATE_PREFIX_LENGTH, one_line, split_date_prefix
from newton.memory.time_expressions import TimeRange

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "recall.sql")

K1, B = 1.2, 0.75  # BM25, the usual constants

PAST_FACTOR = 0.5  # what is past ranks lower, for those who ask for it

WIDEN_FACTOR, MAX_WIDENINGS = 4, 2  # so much wider, and so many times, when most of what is found says the same


class SearchLimits(NamedTuple):
    """How many memories of a kind are searched for, by meaning and as many by words, and how many of them are kept."""

    searched: int
    kept: int


class RetrievedMemory(NamedTuple):
    """A memory that may matter, with its evidence: cosine, lexical share, and relevance as a part of the best one's.

    The fields before `similarity` are the columns of the query `details`, in its order: hundreds of these are made for
    a context, and a tuple is made in a tenth of the time of a dataclass.
    """

    memory_id: UUID
    kind: Kind
    state: str
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    word_count: int
    confidence: float | None
    importance: float | None
    outcome: str | None
    uses: int
    occurred_at: datetime
    created_at: datetime
    accessed_at: datetime | None
    confirmed_at: datetime | None
    trust: Trust
    quarantined: bool
    ref: str | None
    thread_id: UUID | None
    position: int | None
    similarity: float
    lexical: float
    relevance: float

    @property
    def effective_importance(self) -> float:
        """How much it matters, in [0, 1]: as a person said, or else by its record."""
        if self.importance is not None:
            return self.importance
        return derive_importance(self.kind, self.state, self.outcome, self.uses)

    @property
    def evidence_score(self) -> float:
        """What its meaning and its words say for it, without what neighbours lend."""
        return evidence_score(self.similarity, self.lexical, self.word_count)

    @property
    def spoken_text(self) -> str:
        """Its words without the date and speaker of a line, or what an artifact says of itself."""
        return self.summary.partition(": ")[2] if self.kind in ("exchange", "artifact") else self.summary

    @property
    def day(self) -> str | None:
        """The day that both of its forms say in front, if they do."""
        day = split_date_prefix(self.summary)[0]
        return day if day and self.micro[:DATE_PREFIX_LENGTH] == self.summary[:DATE_PREFIX_LENGTH] else None

    @property
    def dedup_text(self) -> str:
        """Who says which words, whatever the day: what says the same need not stand twice."""
        return (self.summary.partition("] ")[2] if self.kind == "exchange" else self.summary).casefold()

    @property
    def is_only_question(self) -> bool:
        """Whether it is a line of one sentence that asks, or tells of nothing but such: another has the answer."""
        if self.kind == "episode":
            return has_only_questions(self.spoken_text)
        return self.kind == "exchange" and is_only_question(self.spoken_text)

    def repeats_query(self, text: str) -> bool:
        """Whether it is a line that only says the same words again, as a question does that was asked before."""
        return self.kind == "exchange" and self.spoken_text.casefold() == _fold_case(text)


@lru_cache(maxsize=8)  # hundreds of memories are held against the same input
def _fold_case(text: str) -> str:
    return one_line(text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What is looked for: the words, and their vector with the model that made it, when there is one."""

    text: str
    vector: "Vector | None" = None
    model_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """What was found, best first, and by what cue; `timely` is of a time that is asked for. `missing` says what was not
    asked, and why."""

    query: RecallQuery
    memories: Sequence[RetrievedMemory]
    missing: Mapping[str, str]
    in_time_range: Set[UUID] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySearch:
    """Where is looked, how widely, and what may be found.

    `past` names the states that are left out. With a `moment` only what was known then is found, as it was then. What
    is of the `times` is found though it may have nothing else of the input. What is not embedded or not found within so
    many `seconds` is done without. `weighing` says what counts.
    """

    db: Database
    agent_id: UUID
    limits: Mapping[Kind, SearchLimits]
    include_quarantined: bool = False
    excluded_states: Set[str] = frozenset({*PAST_STATES, ARCHIVED})
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()
    later_ids: Sequence[UUID] = ()
    time_ranges: Sequence[TimeRange] = ()
    timeout_seconds: float | None = None
    weights: RankingWeights = DEFAULT_WEIGHTS

    @property
    def query_arguments(self) -> dict[str, object]:
        """How the queries take it."""
        searched = [width.searched for width in self.limits.values()]
        return {
            "agent_id": self.agent_id,
            "kinds": list(self.limits),
            "limits": searched,
            "quarantined": self.include_quarantined,
            "past_states": list(self.excluded_states) if self.moment is None else [],
            "excluded_ids": self.excluded_ids,
        }

    def widen(self) -> "MemorySearch":
        widths = {
            kind: SearchLimits(w.searched * WIDEN_FACTOR, w.kept * WIDEN_FACTOR) for kind, w in self.limits.items()
        }
        return replace(self, limits=widths)


class _SearchBranch(NamedTuple):
    """What one way of looking has found, or why it has not."""

    hits: Mapping[UUID, Record]
    missing: Mapping[str, str]


async def recall(text: str, *, embedder: "Embedder | None", search: MemorySearch) -> RecallResult:
    """The memories of each kind most likely meant, best first.

    Words are searched while the text is embedded and its meaning searched. Without a vector the words decide alone. The
    search is wide and light; only what it keeps is read in full. It is made wider when most of that says the same.
    """
    if search.moment is not None:
        search = await _limit_to_moment(search, search.moment)
    async with task_group() as tasks:
        others = [tasks.create_task(_search_words(text, search)), tasks.create_task(_search_times(search))]
        cue, missing = RecallQuery(text=text), dict[str, str]()
        with suppress(TimeoutError):
            async with asyncio.timeout(search.timeout_seconds) as limit:
                cue, missing = await _embed_query(text, embedder)
                async with search.db.transaction(search.agent_id) as tx:
                    near = await _search_meaning(tx, cue, missing, search)
                    limit.reschedule(None)  # the rest, in the same unit of work, has the time of the whole source
                    return await _build_result(tx, cue, [near, *await asyncio.gather(*others)], search)
    near = _SearchBranch({}, {**missing, "embeddings": _timeout_message(search)})
    async with search.db.transaction(search.agent_id) as tx:
        return await _build_result(tx, cue, [near, *(other.result() for other in others)], search)


async def _build_result(
    tx: Tx, query: RecallQuery, branches: Sequence[_SearchBranch], search: MemorySearch
) -> RecallResult:
    """`read` is what was found by meaning, by words and by time."""
    near, worded, timed = branches
    search = replace(search, time_ranges=()) if timed.missing else search
    found, then = await _rank_hits(tx, query, near.hits, {**timed.hits, **worded.hits}, search)
    for _ in range(MAX_WIDENINGS):
        if not has_too_many_duplicates(found, query.text, search.limits):
            break
        search = search.widen()
        wider = {**timed.hits, **await _fetch_by_words(tx, query.text, search)}
        found, then = await _rank_hits(tx, query, await _fetch_by_meaning(tx, query, search), wider, search)
    missing = {name: why for one in branches for name, why in one.missing.items()}
    return RecallResult(query=query, memories=found, missing=missing, in_time_range=then)


def has_too_many_duplicates(
    memories: Sequence[RetrievedMemory], text: str, limits: Mapping[Kind, SearchLimits]
) -> bool:
    """Whether what says the same, or only what the input says, takes most of the room of some kind. Pure."""
    number = Counter(f.kind for f in memories)
    full = {kind: width.kept for kind, width in limits.items() if number[kind] >= width.kept}
    said = {(f.kind, f.dedup_text) for f in memories if f.kind in full and not f.repeats_query(text)}
    distinct = Counter[str](kind for kind, _ in said)
    return any(kept > 2 * distinct[kind] for kind, kept in full.items())


async def _limit_to_moment(search: MemorySearch, moment: datetime) -> MemorySearch:
    async with search.db.transaction(search.agent_id) as tx:
        rows = await SQL["list_hidden_at"].fetch_all(
            tx,
            agent_id=search.agent_id,
            moment=moment,
            quarantined=search.include_quarantined,
            past_states=list(search.excluded_states),
        )
    # what is quarantined or past by now may have been neither then
    hidden, unborn = [row[0] for row in rows], [row[0] for row in rows if row["unborn"]]
    return replace(search, excluded_ids=[*search.excluded_ids, *hidden], later_ids=unborn, include_quarantined=True)


async def _rank_hits(
    tx: Tx, query: RecallQuery, by_meaning: Mapping[UUID, Record], by_words: Mapping[UUID, Record], search: MemorySearch
) -> tuple[list[RetrievedMemory], Set[UUID]]:
    far = await _fetch_similarities(tx, query, by_words.keys() - by_meaning.keys(), search)
    hits = _merge_hits(by_meaning, by_words, far)
    hits += await _fetch_neighbours(tx, query, hits, search)
    then = await _find_in_range(tx, hits, search)
    most: dict[Kind, int] = {kind: width.kept for kind, width in search.limits.items()}
    kept = select_best(hits, most, weights=search.weights, text=query.text, in_range=then)
    rows = await SQL["get_memories"].fetch_all(tx, agent_id=search.agent_id, memory_ids=list(kept))
    found = [RetrievedMemory._make((*row, *kept[row[0]])) for row in rows]
    if search.moment is not None:
        found = await _restore_as_of(tx, found, agent_id=search.agent_id, moment=search.moment)
    found = [f._replace(relevance=f.relevance * PAST_FACTOR) if past_reason(f.kind, f.state) else f for f in found]
    return sorted(found, key=lambda f: (-f.relevance, f.memory_id)), then & kept.keys()


async def _restore_as_of(
    tx: Tx, memories: Sequence[RetrievedMemory], *, agent_id: UUID, moment: datetime
) -> list[RetrievedMemory]:
    """The memories as they were at a moment. How often they had been used by then nobody knows: it counts for none."""
    were = await read_as_of(tx, agent_id=agent_id, memory_ids=[f.memory_id for f in memories], moment=moment)
    return [
        f._replace(**were[f.memory_id]._asdict(), uses=0, accessed_at=None) for f in memories if f.memory_id in were
    ]


async def _find_in_range(tx: Tx, hits: Sequence[SearchHit], search: MemorySearch) -> Set[UUID]:
    ids = [hit.memory_id for hit in hits] if search.time_ranges else []
    return (
        await time_search.filter_in_range(tx, ids, search.time_ranges, agent_id=search.agent_id) if ids else frozenset()
    )


async def _fetch_neighbours(
    tx: Tx, query: RecallQuery, hits: Sequence[SearchHit], search: MemorySearch
) -> list[SearchHit]:
    """What stands beside the best lines and was not found itself: of a large memory that is most of it."""
    places = find_neighbours(hits, search.weights) if "exchange" in search.limits else []
    if not places:
        return []
    rows = await SQL["get_adjacent_messages"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.vector,
        thread_ids=[thread for thread, _ in places],
        positions=[place for _, place in places],
        quarantined=search.include_quarantined,
        excluded_ids=search.excluded_ids,
    )
    return [SearchHit._make((*row, 0.0)) for row in rows]


async def _embed_query(text: str, embedder: "Embedder | None") -> tuple[RecallQuery, dict[str, str]]:
    if embedder is None:
        return RecallQuery(text=text), {"embeddings": "no embedding model is set"}
    try:
        vector = (await embedder.embed([text]))[0]
    except ProviderError as error:
        return RecallQuery(text=text), {"embeddings": error.what}
    return RecallQuery(text=text, vector=vector, model_id=derive_model_id(embedder.identity)), {}


async def _search_words(text: str, search: MemorySearch) -> _SearchBranch:
    try:
        async with asyncio.timeout(search.timeout_seconds), search.db.transaction(search.agent_id) as tx:
            return _SearchBranch(await _fetch_by_words(tx, text, search), {})
    except TimeoutError:
        return _SearchBranch({}, {"words": _timeout_message(search)})


async def _search_times(search: MemorySearch) -> _SearchBranch:
    if not search.time_ranges:
        return _SearchBranch({}, {})
    try:
        async with asyncio.timeout(search.timeout_seconds), search.db.transaction(search.agent_id) as tx:
            return _SearchBranch(await time_search.find_in_range(tx, search.time_ranges, search.query_arguments), {})
    except TimeoutError:
        return _SearchBranch({}, {"times": _timeout_message(search)})


async def _search_meaning(
    tx: Tx, query: RecallQuery, missing: Mapping[str, str], search: MemorySearch
) -> _SearchBranch:
    """What is near in meaning. Where nothing is, it may be that another model has taken over, and that is said."""
    hits = await _fetch_by_meaning(tx, query, search)
    if not hits and query.model_id is not None:
        identity = await read_active_model(tx, agent_id=search.agent_id)
        if identity is not None and derive_model_id(identity) != query.model_id:
            return _SearchBranch({}, {**missing, "embeddings": f"memories are found by {identity} now"})
    return _SearchBranch(hits, missing)


def _timeout_message(search: MemorySearch) -> str:
    return f"no answer within {search.timeout_seconds:g} seconds"


async def _fetch_by_meaning(tx: Tx, query: RecallQuery, search: MemorySearch) -> dict[UUID, Record]:
    if query.vector is None or not search.weights.similarity:
        return {}
    rows = await SQL["search_vectors"].fetch_all(
        tx, **search.query_arguments, model_id=query.model_id, embedding=query.vector
    )
    return {row[0]: row for row in rows}


async def _fetch_by_words(tx: Tx, text: str, search: MemorySearch) -> dict[UUID, Record]:
    if not search.weights.lexical:
        return {}
    rows = await SQL["search_bm25"].fetch_all(
        tx, **search.query_arguments, created_later=search.later_ids, input=text, k1=K1, b=B
    )
    return {row[0]: row for row in rows}


async def _fetch_similarities(
    tx: Tx, query: RecallQuery, memory_ids: Set[UUID], search: MemorySearch
) -> dict[UUID, float]:
    if query.vector is None or not memory_ids or not search.weights.similarity:
        return {}
    rows = await SQL["get_similarities"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.vector,
        kinds=list(search.limits),
        memory_ids=list(memory_ids),
    )
    return {row[0]: row[1] for row in rows}


def _merge_hits(
    by_meaning: Mapping[UUID, Record], by_words: Mapping[UUID, Record], similarities: Mapping[UUID, float]
) -> list[SearchHit]:
    """Every hit once, with both kinds of evidence. The queries' last column is their own evidence."""
    hits = [
        SearchHit._make((*row, by_words[memory_id][-1] if memory_id in by_words else 0.0))
        for memory_id, row in by_meaning.items()
    ]
    return hits + [
        SearchHit._make((*row[:-1], similarities.get(memory_id, 0.0), row[-1]))
        for memory_id, row in by_words.items()
        if memory_id not in by_meaning
    ]


async def fetch_memories(
    tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, moment: datetime | None
) -> list[RetrievedMemory]:
    """These memories in their order, as they were at a moment; what was not there yet is left out. Nothing is known of
    their relevance."""
    rows = await SQL["get_memories"].fetch_all(tx, agent_id=agent_id, memory_ids=list(memory_ids))
    found = {row[0]: RetrievedMemory._make((*row, 0.0, 0.0, 0.0)) for row in rows}
    ordered = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return ordered if moment is None else await _restore_as_of(tx, ordered, agent_id=agent_id, moment=moment)


async def fetch_preceding(
    tx: Tx, *, agent_id: UUID, thread_id: UUID, position: int, limit: int
) -> tuple[RetrievedMemory, ...]:
    """What stands before a place of a thread, the nearest first. Nothing is known of its relevance."""
    rows = await SQL["list_messages_before"].fetch_all(
        tx, agent_id=agent_id, thread_id=thread_id, position=position, max_rows=limit
    )
    return tuple(RetrievedMemory._make((*row, 0.0, 0.0, 0.0)) for row in rows)


async def fetch_pending_decisions(
    tx: Tx, *, agent_id: UUID, since: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """The latest decisions that were made from a moment on and are not carried out yet, the oldest of them first."""
    rows = await SQL["list_open_decisions"].fetch_all(tx, agent_id=agent_id, since=since, max_rows=limit)
    return tuple(RetrievedMemory._make((*row, 0.0, 0.0, 0.0)) for row in reversed(rows))


async def fetch_pending_decisions_as_of(
    tx: Tx, *, agent_id: UUID, since: datetime, moment: datetime, limit: int
) -> tuple[RetrievedMemory, ...]:
    """The same as they were at a moment that is over."""
    rows = await SQL["list_open_decisions_at"].fetch_all(
        tx, agent_id=agent_id, since=since, moment=moment, max_rows=limit
    )
    found = [RetrievedMemory._make((*row, 0.0, 0.0, 0.0)) for row in reversed(rows)]
    return tuple(await _restore_as_of(tx, found, agent_id=agent_id, moment=moment))
