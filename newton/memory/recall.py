"""Search for memories: exact nearest-neighbour search and exact BM25 in parallel, and the ranking of their results."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.concurrency import task_group
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import derive_model_id
from newton.memory import memory_reader
from newton.memory.memory import KINDS, Kind, past_reason
from newton.memory.memory_reader import NO_EVIDENCE, read_found, restore_as_of, to_memory
from newton.memory.query_vectors import embed_text, encode_question
from newton.memory.ranking import SearchHit, find_neighbours, select_best
from newton.memory.search_types import (
    BestWindow,
    MemorySearch,
    RecallQuery,
    RecallResult,
    RetrievedMemory,
    SearchLimits,
)
from newton.memory.vectors import read_active_model
from newton.text.questions import find_measures
from newton.text.words import prepare_words

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

SQL = load("newton.memory", "recall.sql")

K1, B = 1.2, 0.75  # the usual constants of BM25
MAX_SUPERSEDED = 8  # superseded facts of each search that stand for what took their place
PAST_FACTOR = 0.5  # multiplies the relevance of past memories, where they are included
# Weight of the share of the input's words in a window; the cosine has weight 1. Words decide only between windows
# without vectors: the subject of the input is in many windows of a text about it, often not in the one that answers.
WINDOW_WORD_WEIGHT = 0.01
MAX_WIDENINGS = 2  # of a search that finds mostly duplicates
# Of the time until the deadline, if partial results are accepted: the end of the encoding of a question, of the
# embedding, and of the searches. The rest is for the ranking of what was found.
ENCODE_SHARE, EMBED_SHARE, SEARCH_SHARE = 0.4, 0.55, 0.75

_Row = Record | tuple[Any, ...]  # the columns of a search result, by their positions in SearchHit
_Embedded = tuple[RecallQuery, Mapping[str, str]]  # the query, and why it has no vector


class _RankedHits(NamedTuple):
    """The memories found, the ids of those in the requested times, and facts that contradict one of the memories.

    `answering` has the cosines of the memories with the vector of the search, if that differs from the query text's.
    """

    found: list[RetrievedMemory]
    in_range: Set[UUID]
    contradictions: list[RetrievedMemory]
    answering: Mapping[UUID, float]


class _SearchBranch(NamedTuple):
    """The hits of one search (by meaning, words or time). If it failed, `missing` maps its name to the reason.

    Only the search by words sets `known_share` and `text_count`.
    """

    hits: Mapping[UUID, _Row]
    missing: Mapping[str, str]
    known_share: float = 0.0
    text_count: int = 0


async def recall(
    text: str, *, embedder: "Embedder | None", search: MemorySearch, is_question: bool = True
) -> RecallResult:
    """Return the memories that are most relevant to a text, best first, within the limit of each kind.

    The search by words runs while the text is embedded. The search by meaning starts once it has a vector: from the
    encoder of questions, or from the embedding model if the encoder fails or takes more than `ENCODE_SHARE` of the
    time. At the deadline, the results of finished searches are ranked; a request that accepts no partial result raises
    TimeoutExceededError. Without an embedding there is no search by meaning. The results are merged in the transaction
    of the search by meaning, unless it would have to wait. Only memories within the limits are read in full. The search
    is widened if most of them are duplicates.
    """
    search = replace(search, uncounted_ids=search.excluded_ids)
    if search.moment is not None:
        search = await _limit_to_moment(search, search.moment)
    query, missing, near = RecallQuery(text=text), dict[str, str](), None
    async with task_group() as tasks:
        encoding = tasks.create_task(_encode_in_time(text, embedder if is_question else None, search))
        embedding_text = tasks.create_task(_embed_in_time(text, embedder, search, encoding))
        others = [tasks.create_task(_search_words(text, search)), tasks.create_task(_search_times(search))]
        with suppress(TimeoutError):
            async with search.deadline.share(SEARCH_SHARE).timeout() as limit:
                query, missing = await encoding
                if query.search_vector is None:
                    # the time limit must not cancel the task, which has the same limit: its result is needed below
                    query, unembedded = await asyncio.shield(embedding_text)
                    missing = {**missing, **unembedded}
                async with search.db.transaction(search.agent_id) as tx:
                    near = await _search_meaning(tx, query, missing, search)
                    limit.reschedule(None)  # the rest of the transaction is limited by the caller
                    # else it would hold a connection, and wait for other connections or for the embedder
                    if all(task.done() for task in (embedding_text, *others)):
                        branches = [near, *(one.result() for one in others)]
                        return await _build_result(tx, query, embedding_text.result(), branches, search)
    near = near or _SearchBranch({}, {**missing, "embeddings": search.deadline.accept_late("embeddings")})
    branches = [near, *(one.result() for one in others)]
    async with search.db.transaction(search.agent_id) as tx:
        return await _build_result(tx, query, embedding_text.result(), branches, search)


async def _encode_in_time(text: str, embedder: "Embedder | None", search: MemorySearch) -> _Embedded:
    """Encode the question within `ENCODE_SHARE` of the time; return the query without a vector if that is not possible.

    The rest of the time suffices to search with the vector of the text.
    """
    deadline = search.deadline.accept_partial().share(ENCODE_SHARE)
    try:
        async with deadline.timeout():
            return await encode_question(text, embedder) or (RecallQuery(text=text), {})
    except TimeoutError:
        return RecallQuery(text=text), {"question encoder": deadline.accept_late("question encoder")}


async def _embed_in_time(
    text: str, embedder: "Embedder | None", search: MemorySearch, encoding: "asyncio.Task[_Embedded]"
) -> _Embedded:
    """Embed the text once `encoding` has ended, because the search waits for the encoder, which needs the cores."""
    try:
        async with search.deadline.share(EMBED_SHARE).timeout():
            await asyncio.wait([encoding])
            return await embed_text(text, embedder)
    except TimeoutError:
        return RecallQuery(text=text), {"embeddings": search.deadline.accept_late("embeddings")}


async def _build_result(
    tx: Tx, query: RecallQuery, embedded: _Embedded, branches: Sequence[_SearchBranch], search: MemorySearch
) -> RecallResult:
    """Merge the hits of the searches by meaning, words and time; widen the searches if too many hits are duplicates.

    `embedded` is the query with the vector of its text.
    """
    text_query, unembedded = embedded
    query = query.add_text_vector(text_query)
    by_meaning, by_words, by_time = branches
    search = replace(search, time_ranges=()) if by_time.missing else search
    ranked = await _rank_hits(tx, query, by_meaning.hits, {**by_time.hits, **by_words.hits}, search)
    for _ in range(MAX_WIDENINGS):
        if not has_too_many_duplicates(ranked.found, query.text, search.limits):
            break
        search = search.widen()
        wider = {**by_time.hits, **(await _fetch_by_words(tx, query.text, search)).hits}
        ranked = await _rank_hits(tx, query, await _fetch_by_meaning(tx, query, search), wider, search)
    missing = {name: reason for branch in branches for name, reason in branch.missing.items()}
    return RecallResult(
        query=query,
        memories=ranked.found,
        missing={**missing, **unembedded},
        in_time_range=ranked.in_range,
        contradictions=ranked.contradictions,
        answer_similarities=ranked.answering,
        known_share=by_words.known_share,
        text_count=max(by_words.text_count, 0),  # the past may have fewer texts than the present has procedures
    )


def has_too_many_duplicates(
    memories: Sequence[RetrievedMemory], text: str, limits: Mapping[Kind, SearchLimits]
) -> bool:
    """Return whether duplicates, or repeats of the query, are more than half of the memories of a kind at its limit.

    Pure.
    """
    counts = Counter(memory.kind for memory in memories)
    full = {kind: width.kept for kind, width in limits.items() if counts[kind] >= width.kept}
    texts = {
        (memory.kind, memory.dedup_text)
        for memory in memories
        if memory.kind in full and not memory.repeats_query(text)
    }
    distinct = Counter[str](kind for kind, _ in texts)
    return any(kept > 2 * distinct[kind] for kind, kept in full.items())


async def _limit_to_moment(search: MemorySearch, moment: datetime) -> MemorySearch:
    """Return the search as of a moment: without what was stored later, quarantined or past then, whatever it is now."""
    async with search.db.transaction(search.agent_id) as tx:
        quarantined, past = list(search.quarantined_kinds), list(search.excluded_states)
        rows = await SQL["list_hidden_at"].fetch_all(
            tx, agent_id=search.agent_id, moment=moment, quarantined=quarantined, past_states=past
        )
    shown = frozenset(search.shown_ids)
    rows = [row for row in rows if row["is_later"] or row[0] not in shown]
    # a memory that is quarantined or past today may have been current then
    superseded = [row[0] for row in rows if row["is_superseded"] and row[0] not in search.excluded_ids]
    return replace(
        search,
        excluded_ids=[*search.excluded_ids, *(row[0] for row in rows)],
        uncounted_ids=[*search.uncounted_ids, *(row[0] for row in rows if row["is_later"])],
        superseded_ids=superseded,
        quarantined_kinds=frozenset(KINDS),
    )


async def _rank_hits(
    tx: Tx,
    query: RecallQuery,
    by_meaning: Mapping[UUID, _Row],
    by_words: Mapping[UUID, _Row],
    search: MemorySearch,
) -> _RankedHits:
    """Merge the hits of the searches, add the messages next to them, and read the best within the limits in full."""
    similarities = await _fetch_similarities(tx, query, by_words.keys() - by_meaning.keys(), search)
    hits = _merge_hits(by_meaning, by_words, similarities)
    windows, hits = await _score_windows(tx, query, hits, search)
    hits += await _fetch_neighbours(tx, query, hits, search)
    in_range = await _find_in_range(tx, hits, search)
    limits: dict[Kind, int] = {kind: width.kept for kind, width in search.limits.items()}
    kept = select_best(
        hits, limits, weights=search.weights, text=query.text, in_range=in_range, preferred=search.preferred
    )
    answering = {memory_id: evidence[0] for memory_id, evidence in kept.items()} if query.is_encoded else {}
    rows, kept = await read_found(tx, query, kept, search)
    found = [to_memory(row, kept.get(row[0], NO_EVIDENCE), windows.get(row[0])) for row in rows]
    if search.moment is not None:
        found = await restore_as_of(tx, found, agent_id=search.agent_id, moment=search.moment)
    found = [
        memory._replace(relevance=memory.relevance * PAST_FACTOR) if past_reason(memory.kind, memory.state) else memory
        for memory in found
    ]
    best_first = sorted(found, key=lambda memory: (-memory.relevance, memory.memory_id))
    best, hidden = [memory for memory in best_first if memory.memory_id in kept], {*kept, *search.excluded_ids}
    return _RankedHits(
        best, in_range & kept.keys(), [memory for memory in best_first if memory.memory_id not in hidden], answering
    )


async def _score_windows(
    tx: Tx, query: RecallQuery, hits: Sequence[SearchHit], search: MemorySearch
) -> tuple[Mapping[UUID, BestWindow], list[SearchHit]]:
    """Return the best window of each hit with a long text, and the hits with the similarity of that window if higher.

    The model reads only the beginning of a long text, and a single sentence has little effect on the whole vector.
    """
    long_ids = [hit.memory_id for hit in hits if hit.is_long]
    if not long_ids:
        return {}, list(hits)
    rows = await SQL["find_best_windows"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.search_vector,
        input=prepare_words(query.text),
        memory_ids=long_ids,
        word_weight=WINDOW_WORD_WEIGHT,
    )
    windows = {row[0]: BestWindow(*row[1:4]) for row in rows}
    similarities = {row[0]: row[4] for row in rows} if search.weights.similarity else {}
    return windows, [hit._replace(similarity=max(hit.similarity, similarities.get(hit.memory_id, 0.0))) for hit in hits]


async def _find_in_range(tx: Tx, hits: Sequence[SearchHit], search: MemorySearch) -> Set[UUID]:
    if not (hits and search.time_ranges):
        return frozenset()
    ids = [hit.memory_id for hit in hits]
    return await memory_reader.filter_in_range(tx, ids, search.time_ranges, agent_id=search.agent_id)


async def _fetch_neighbours(
    tx: Tx, query: RecallQuery, hits: Sequence[SearchHit], search: MemorySearch
) -> list[SearchHit]:
    """Return the messages next to the best hits in the same thread, without those that are hits themselves."""
    neighbours = find_neighbours(hits, search.weights) if "exchange" in search.limits else []
    if not neighbours:
        return []
    thread_ids, positions = zip(*neighbours, strict=True)
    rows = await SQL["get_adjacent_messages"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.search_vector,
        thread_ids=thread_ids,
        positions=positions,
        quarantined=list(search.quarantined_kinds),
        excluded_ids=search.excluded_ids,
        shown_ids=search.shown_ids,
    )
    return [SearchHit._make((*row, 0.0)) for row in rows]


async def _search_words(text: str, search: MemorySearch) -> _SearchBranch:
    try:
        async with search.deadline.share(SEARCH_SHARE).timeout(), search.db.transaction(search.agent_id) as tx:
            return await _fetch_by_words(tx, text, search)
    except TimeoutError:
        return _SearchBranch({}, {"words": search.deadline.accept_late("words")})


async def _search_times(search: MemorySearch) -> _SearchBranch:
    if not search.time_ranges:
        return _SearchBranch({}, {})
    try:
        async with search.deadline.share(SEARCH_SHARE).timeout(), search.db.transaction(search.agent_id) as tx:
            return _SearchBranch(await memory_reader.find_in_range(tx, search.time_ranges, search.query_arguments), {})
    except TimeoutError:
        return _SearchBranch({}, {"times": search.deadline.accept_late("times")})


async def _search_meaning(
    tx: Tx, query: RecallQuery, missing: Mapping[str, str], search: MemorySearch
) -> _SearchBranch:
    """Search by vector. If nothing is found, check whether another embedding model has become active."""
    hits = await _fetch_by_meaning(tx, query, search)
    if not hits and query.model_id is not None:
        identity = await read_active_model(tx, agent_id=search.agent_id)
        if identity is not None and derive_model_id(identity) != query.model_id:
            return _SearchBranch({}, {**missing, "embeddings": f"the active embedding model is {identity}"})
    return _SearchBranch(hits, missing)


async def _fetch_by_meaning(tx: Tx, query: RecallQuery, search: MemorySearch) -> Mapping[UUID, _Row]:
    if query.search_vector is None or not search.weights.similarity:
        return {}
    vector = {"model_id": query.model_id, "embedding": query.search_vector}
    rows = await SQL["search_vectors"].fetch_all(
        tx, **search.query_arguments, **vector, **_superseded_arguments(search)
    )
    return _keep_best(rows, score=-1)


async def _fetch_by_words(tx: Tx, text: str, search: MemorySearch) -> _SearchBranch:
    if not search.weights.lexical:
        return _SearchBranch({}, {})
    arguments = {**search.query_arguments, **_superseded_arguments(search), "uncounted_ids": search.uncounted_ids}
    words = {"input": prepare_words(text), "measures": find_measures(text)}
    rows = await SQL["search_bm25"].fetch_all(tx, **arguments, **words, k1=K1, b=B)
    found = [row for row in rows if row["memory_id"]]
    hits = {i: row[:-2] for i, row in _keep_best(found, score=-3).items()}
    return _SearchBranch(hits, {}, rows[0]["known_share"], int(rows[0]["texts"]))


def _superseded_arguments(search: MemorySearch) -> dict[str, object]:
    return {"superseded_ids": search.superseded_ids, "moment": search.moment, "max_superseded": MAX_SUPERSEDED}


def _keep_best(rows: Sequence[Record], *, score: int) -> dict[UUID, Record]:
    """Return the best row of each memory by id. `score` is the index of the column that is compared.

    A memory has several rows if a search found it by its own text and by that of a fact that it superseded.
    """
    best: dict[UUID, Record] = {}
    for row in rows:
        if row[0] not in best or row[score] > best[row[0]][score]:
            best[row[0]] = row
    return best


async def _fetch_similarities(
    tx: Tx, query: RecallQuery, memory_ids: Set[UUID], search: MemorySearch
) -> dict[UUID, float]:
    """Return the cosines of these memories with the vector of the search, by id; none without a search by meaning."""
    if query.search_vector is None or not memory_ids or not search.weights.similarity:
        return {}
    rows = await SQL["get_similarities"].fetch_all(
        tx,
        agent_id=search.agent_id,
        model_id=query.model_id,
        embedding=query.search_vector,
        kinds=list(search.limits),
        memory_ids=list(memory_ids),
    )
    return {row[0]: row[1] for row in rows}


def _merge_hits(
    by_meaning: Mapping[UUID, _Row], by_words: Mapping[UUID, _Row], similarities: Mapping[UUID, float]
) -> list[SearchHit]:
    """Merge the hits of the searches by meaning and by words. The last column of a row is the score of its search."""
    rows = [(*row, by_words[i][-1] if i in by_words else 0.0) for i, row in by_meaning.items()]
    rows += [(*row[:-1], similarities.get(i, 0.0), row[-1]) for i, row in by_words.items() if i not in by_meaning]
    return [SearchHit._make(row) for row in rows]
