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

from newton.concurrency import together
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import model_id
from newton.memory import timely
from newton.memory.formerly import as_they_were
from newton.memory.importance import derived
from newton.memory.memory import ARCHIVED, PAST, Kind, Trust, past
from newton.memory.questions import only_asks, tells_of_asking
from newton.memory.ranking import USUAL, Hit, Weighing, beside, best, evidence
from newton.memory.reembedding import active
from newton.memory.representations import IN_FRONT, one_line, parted
from newton.memory.spans import Span

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "recall.sql")

K1, B = 1.2, 0.75  # BM25, the usual constants

PAST_FACTOR = 0.5  # what is past ranks lower, for those who ask for it

WIDER, MOST_WIDENED = 4, 2  # so much wider, and so many times, when most of what is found says the same


class Width(NamedTuple):
    """How many memories of a kind are searched for, by meaning and as many by words, and how many of them are kept."""

    searched: int
    kept: int


class Found(NamedTuple):
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
    words: int
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
    thread: UUID | None
    place: int | None
    similarity: float
    lexical: float
    relevance: float

    @property
    def matters(self) -> float:
        """How much it matters, in [0, 1]: as a person said, or else by its record."""
        if self.importance is not None:
            return self.importance
        return derived(self.kind, self.state, self.outcome, self.uses)

    @property
    def evidence(self) -> float:
        """What its meaning and its words say for it, without what neighbours lend."""
        return evidence(self.similarity, self.lexical, self.words)

    @property
    def said(self) -> str:
        """Its words without the date and speaker of a line, or what an artifact says of itself."""
        return self.summary.partition(": ")[2] if self.kind in ("exchange", "artifact") else self.summary

    @property
    def day(self) -> str | None:
        """The day that both of its forms say in front, if they do."""
        day = parted(self.summary)[0]
        return day if day and self.micro[:IN_FRONT] == self.summary[:IN_FRONT] else None

    @property
    def heard(self) -> str:
        """Who says which words, whatever the day: what says the same need not stand twice."""
        return (self.summary.partition("] ")[2] if self.kind == "exchange" else self.summary).casefold()

    @property
    def only_asks(self) -> bool:
        """Whether it is a line of one sentence that asks, or tells of nothing but such: another has the answer."""
        if self.kind == "episode":
            return tells_of_asking(self.said)
        return self.kind == "exchange" and only_asks(self.said)

    def echoes(self, text: str) -> bool:
        """Whether it is a line that only says the same words again, as a question does that was asked before."""
        return self.kind == "exchange" and self.said.casefold() == _folded(text)


@lru_cache(maxsize=8)  # hundreds of memories are held against the same input
def _folded(text: str) -> str:
    return one_line(text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """What is looked for: the words, and their vector with the model that made it, when there is one."""

    text: str
    vector: "Vector | None" = None
    model_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """What was found, best first, and by what cue; `timely` is of a time that is asked for. `missing` says what was not
    asked, and why."""

    cue: Cue
    found: Sequence[Found]
    missing: Mapping[str, str]
    timely: Set[UUID] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where is looked, how widely, and what may be found.

    `past` names the states that are left out. With a `moment` only what was known then is found, as it was then. What
    is of the `times` is found though it may have nothing else of the input. What is not embedded or not found within so
    many `seconds` is done without. `weighing` says what counts.
    """

    db: Database
    agent_id: UUID
    widths: Mapping[Kind, Width]
    quarantined: bool = False
    past: Set[str] = frozenset({*PAST, ARCHIVED})
    moment: datetime | None = None
    hidden: Sequence[UUID] = ()
    unborn: Sequence[UUID] = ()
    times: Sequence[Span] = ()
    seconds: float | None = None
    weighing: Weighing = USUAL

    @property
    def spread(self) -> dict[str, object]:
        """How the queries take it."""
        searched = [width.searched for width in self.widths.values()]
        return {
            "agent_id": self.agent_id,
            "kinds": list(self.widths),
            "limits": searched,
            "quarantined": self.quarantined,
            "past_states": list(self.past) if self.moment is None else [],
            "excluded_ids": self.hidden,
        }

    def wider(self) -> "Search":
        widths = {kind: Width(w.searched * WIDER, w.kept * WIDER) for kind, w in self.widths.items()}
        return replace(self, widths=widths)


class _Read(NamedTuple):
    """What one way of looking has found, or why it has not."""

    hits: Mapping[UUID, Record]
    missing: Mapping[str, str]


async def recall(text: str, *, embedder: "Embedder | None", search: Search) -> Recollection:
    """The memories of each kind most likely meant, best first.

    Words are searched while the text is embedded and its meaning searched. Without a vector the words decide alone. The
    search is wide and light; only what it keeps is read in full. It is made wider when most of that says the same.
    """
    if search.moment is not None:
        search = await _as_of(search, search.moment)
    async with together() as tasks:
        others = [tasks.create_task(_worded(text, search)), tasks.create_task(_timed(search))]
        cue, missing = Cue(text=text), dict[str, str]()
        with suppress(TimeoutError):
            async with asyncio.timeout(search.seconds) as limit:
                cue, missing = await _cue(text, embedder)
                async with search.db.work(search.agent_id) as tx:
                    near = await _near(tx, cue, missing, search)
                    limit.reschedule(None)  # the rest, in the same unit of work, has the time of the whole source
                    return await _recollection(tx, cue, [near, *await asyncio.gather(*others)], search)
    near = _Read({}, {**missing, "embeddings": _late(search)})
    async with search.db.work(search.agent_id) as tx:
        return await _recollection(tx, cue, [near, *(other.result() for other in others)], search)


async def _recollection(tx: Tx, cue: Cue, read: Sequence[_Read], search: Search) -> Recollection:
    """`read` is what was found by meaning, by words and by time."""
    near, worded, timed = read
    search = replace(search, times=()) if timed.missing else search
    found, then = await _found(tx, cue, near.hits, {**timed.hits, **worded.hits}, search)
    for _ in range(MOST_WIDENED):
        if not crowded(found, cue.text, search.widths):
            break
        search = search.wider()
        wider = {**timed.hits, **await _by_words(tx, cue.text, search)}
        found, then = await _found(tx, cue, await _by_meaning(tx, cue, search), wider, search)
    missing = {name: why for one in read for name, why in one.missing.items()}
    return Recollection(cue=cue, found=found, missing=missing, timely=then)


def crowded(found: Sequence[Found], text: str, widths: Mapping[Kind, Width]) -> bool:
    """Whether what says the same, or only what the input says, takes most of the room of some kind. Pure."""
    number = Counter(f.kind for f in found)
    full = {kind: width.kept for kind, width in widths.items() if number[kind] >= width.kept}
    said = {(f.kind, f.heard) for f in found if f.kind in full and not f.echoes(text)}
    distinct = Counter[str](kind for kind, _ in said)
    return any(kept > 2 * distinct[kind] for kind, kept in full.items())


async def _as_of(search: Search, moment: datetime) -> Search:
    async with search.db.work(search.agent_id) as tx:
        rows = await SQL["list_hidden_at"].all(
            tx, agent_id=search.agent_id, moment=moment, quarantined=search.quarantined, past_states=list(search.past)
        )
    # what is quarantined or past by now may have been neither then
    hidden, unborn = [row[0] for row in rows], [row[0] for row in rows if row["unborn"]]
    return replace(search, hidden=[*search.hidden, *hidden], unborn=unborn, quarantined=True)


async def _found(
    tx: Tx, cue: Cue, near: Mapping[UUID, Record], worded: Mapping[UUID, Record], search: Search
) -> tuple[list[Found], Set[UUID]]:
    far = await _similarities(tx, cue, worded.keys() - near.keys(), search)
    hits = _united(near, worded, far)
    hits += await _beside(tx, cue, hits, search)
    then = await _timely(tx, hits, search)
    most: dict[Kind, int] = {kind: width.kept for kind, width in search.widths.items()}
    kept = best(hits, most, weighing=search.weighing, text=cue.text, then=then)
    rows = await SQL["get_memories"].all(tx, agent_id=search.agent_id, memory_ids=list(kept))
    found = [Found._make((*row, *kept[row[0]])) for row in rows]
    if search.moment is not None:
        found = await _as_then(tx, found, agent_id=search.agent_id, moment=search.moment)
    found = [f._replace(relevance=f.relevance * PAST_FACTOR) if past(f.kind, f.state) else f for f in found]
    return sorted(found, key=lambda f: (-f.relevance, f.memory_id)), then & kept.keys()


async def _as_then(tx: Tx, found: Sequence[Found], *, agent_id: UUID, moment: datetime) -> list[Found]:
    """The memories as they were at a moment. How often they had been used by then nobody knows: it counts for none."""
    were = await as_they_were(tx, agent_id=agent_id, memory_ids=[f.memory_id for f in found], moment=moment)
    return [f._replace(**were[f.memory_id]._asdict(), uses=0, accessed_at=None) for f in found if f.memory_id in were]


async def _timely(tx: Tx, hits: Sequence[Hit], search: Search) -> Set[UUID]:
    ids = [hit.memory_id for hit in hits] if search.times else []
    return await timely.of_times(tx, ids, search.times, agent_id=search.agent_id) if ids else frozenset()


async def _beside(tx: Tx, cue: Cue, hits: Sequence[Hit], search: Search) -> list[Hit]:
    """What stands beside the best lines and was not found itself: of a large memory that is most of it."""
    places = beside(hits, search.weighing) if "exchange" in search.widths else []
    if not places:
        return []
    rows = await SQL["get_adjacent_messages"].all(
        tx,
        agent_id=search.agent_id,
        model_id=cue.model_id,
        embedding=cue.vector,
        thread_ids=[thread for thread, _ in places],
        positions=[place for _, place in places],
        quarantined=search.quarantined,
        excluded_ids=search.hidden,
    )
    return [Hit._make((*row, 0.0)) for row in rows]


async def _cue(text: str, embedder: "Embedder | None") -> tuple[Cue, dict[str, str]]:
    if embedder is None:
        return Cue(text=text), {"embeddings": "no embedding model is set"}
    try:
        vector = (await embedder.embed([text]))[0]
    except ProviderError as error:
        return Cue(text=text), {"embeddings": error.what}
    return Cue(text=text, vector=vector, model_id=model_id(embedder.identity)), {}


async def _worded(text: str, search: Search) -> _Read:
    try:
        async with asyncio.timeout(search.seconds), search.db.work(search.agent_id) as tx:
            return _Read(await _by_words(tx, text, search), {})
    except TimeoutError:
        return _Read({}, {"words": _late(search)})


async def _timed(search: Search) -> _Read:
    if not search.times:
        return _Read({}, {})
    try:
        async with asyncio.timeout(search.seconds), search.db.work(search.agent_id) as tx:
            return _Read(await timely.during(tx, search.times, search.spread), {})
    except TimeoutError:
        return _Read({}, {"times": _late(search)})


async def _near(tx: Tx, cue: Cue, missing: Mapping[str, str], search: Search) -> _Read:
    """What is near in meaning. Where nothing is, it may be that another model has taken over, and that is said."""
    hits = await _by_meaning(tx, cue, search)
    if not hits and cue.model_id is not None:
        identity = await active(tx, agent_id=search.agent_id)
        if identity is not None and model_id(identity) != cue.model_id:
            return _Read({}, {**missing, "embeddings": f"memories are found by {identity} now"})
    return _Read(hits, missing)


def _late(search: Search) -> str:
    return f"no answer within {search.seconds:g} seconds"


async def _by_meaning(tx: Tx, cue: Cue, search: Search) -> dict[UUID, Record]:
    if cue.vector is None or not search.weighing.meaning:
        return {}
    rows = await SQL["search_vectors"].all(tx, **search.spread, model_id=cue.model_id, embedding=cue.vector)
    return {row[0]: row for row in rows}


async def _by_words(tx: Tx, text: str, search: Search) -> dict[UUID, Record]:
    if not search.weighing.words:
        return {}
    rows = await SQL["search_bm25"].all(tx, **search.spread, created_later=search.unborn, input=text, k1=K1, b=B)
    return {row[0]: row for row in rows}


async def _similarities(tx: Tx, cue: Cue, memory_ids: Set[UUID], search: Search) -> dict[UUID, float]:
    if cue.vector is None or not memory_ids or not search.weighing.meaning:
        return {}
    rows = await SQL["get_similarities"].all(
        tx,
        agent_id=search.agent_id,
        model_id=cue.model_id,
        embedding=cue.vector,
        kinds=list(search.widths),
        memory_ids=list(memory_ids),
    )
    return {row[0]: row[1] for row in rows}


def _united(near: Mapping[UUID, Record], worded: Mapping[UUID, Record], far: Mapping[UUID, float]) -> list[Hit]:
    """Every hit once, with both kinds of evidence. The queries' last column is their own evidence."""
    hits = [Hit._make((*row, worded[memory_id][-1] if memory_id in worded else 0.0)) for memory_id, row in near.items()]
    return hits + [
        Hit._make((*row[:-1], far.get(memory_id, 0.0), row[-1]))
        for memory_id, row in worded.items()
        if memory_id not in near
    ]


async def details(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, moment: datetime | None) -> list[Found]:
    """These memories in their order, as they were at a moment; what was not there yet is left out. Nothing is known of
    their relevance."""
    rows = await SQL["get_memories"].all(tx, agent_id=agent_id, memory_ids=list(memory_ids))
    found = {row[0]: Found._make((*row, 0.0, 0.0, 0.0)) for row in rows}
    ordered = [found[memory_id] for memory_id in memory_ids if memory_id in found]
    return ordered if moment is None else await _as_then(tx, ordered, agent_id=agent_id, moment=moment)


async def before(tx: Tx, *, agent_id: UUID, thread: UUID, place: int, most: int) -> tuple[Found, ...]:
    """What stands before a place of a thread, the nearest first. Nothing is known of its relevance."""
    rows = await SQL["list_messages_before"].all(tx, agent_id=agent_id, thread_id=thread, position=place, max_rows=most)
    return tuple(Found._make((*row, 0.0, 0.0, 0.0)) for row in rows)


async def being_made(tx: Tx, *, agent_id: UUID, since: datetime, most: int) -> tuple[Found, ...]:
    """The latest decisions that were made from a moment on and are not carried out yet, the oldest of them first."""
    rows = await SQL["list_open_decisions"].all(tx, agent_id=agent_id, since=since, max_rows=most)
    return tuple(Found._make((*row, 0.0, 0.0, 0.0)) for row in reversed(rows))


async def made_then(tx: Tx, *, agent_id: UUID, since: datetime, moment: datetime, most: int) -> tuple[Found, ...]:
    """The same as they were at a moment that is over."""
    rows = await SQL["list_open_decisions_at"].all(tx, agent_id=agent_id, since=since, moment=moment, max_rows=most)
    found = [Found._make((*row, 0.0, 0.0, 0.0)) for row in reversed(rows)]
    return tuple(await _as_then(tx, found, agent_id=agent_id, moment=moment))
