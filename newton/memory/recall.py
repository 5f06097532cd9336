"""Recall: exact nearest vectors and exact BM25 side by side, and what neighbours lend. No model but the embedder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from asyncpg import Record

from newton.concurrency import together
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import model_id
from newton.memory.memory import Kind, Trust
from newton.memory.ranking import Hit, relevances, stretched
from newton.memory.representations import one_line

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "recall.sql")

K1, B = 1.2, 0.75  # BM25, the usual constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory that may matter, with its evidence: cosine, lexical share, and relevance as a part of the best one's."""

    memory_id: UUID
    kind: Kind
    state: str
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    words: int
    confidence: float | None
    importance: float
    outcome: str | None
    uses: int
    occurred_at: datetime
    created_at: datetime
    accessed_at: datetime | None
    confirmed_at: datetime | None
    trust: Trust
    ref: str | None
    thread: UUID | None
    place: int | None
    similarity: float | None
    lexical: float
    relevance: float

    @property
    def said(self) -> str:
        """Its words without the date and speaker of a line."""
        return self.summary.partition(": ")[2] if self.kind == "exchange" else self.summary

    def echoes(self, text: str) -> bool:
        """Whether it only says the same words again, as a question does that was asked before."""
        return self.said.casefold() == one_line(text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """What is looked for: the words, and their vector with the model that made it, when there is one."""

    text: str
    vector: "Vector | None" = None
    model_id: UUID | None = None


async def cue(text: str, embedder: "Embedder | None") -> tuple[Cue, dict[str, str]]:
    """The text as something to look for, and, when it has no vector, why: then only words are searched."""
    if embedder is None:
        return Cue(text=text), {"embeddings": "no embedding model is set"}
    try:
        vector = (await embedder.embed([text]))[0]
    except ProviderError as error:
        return Cue(text=text), {"embeddings": error.what}
    return Cue(text=text, vector=vector, model_id=model_id(embedder.identity)), {}


async def recall(db: Database, what: Cue, *, agent_id: UUID, limits: Mapping[Kind, int]) -> list[Found]:
    """At most `limits` memories of each kind by meaning, and as many by words; best first."""
    wanted = {"kinds": list(limits), "limits": list(limits.values())}
    async with together() as tasks:
        near = tasks.create_task(_dense(db, what, agent_id=agent_id, wanted=wanted))
        worded = tasks.create_task(_lexical(db, what, agent_id=agent_id, wanted=wanted))
    shares = worded.result()
    async with db.work(agent_id) as tx:
        rows = await SQL["details"].all(
            tx,
            agent_id=agent_id,
            memory_ids=list({*near.result(), *shares}),
            model_id=what.model_id,
            embedding=what.vector,
        )
    return _ranked(rows, shares)


async def before(tx: Tx, *, agent_id: UUID, thread: UUID, place: int, most: int) -> tuple[Found, ...]:
    """What stands before a place of a thread, the nearest first. Nothing is known of its relevance."""
    rows = await SQL["before"].all(tx, agent_id=agent_id, thread=thread, place=place, most=most)
    return tuple(Found(**row, similarity=None, lexical=0.0, relevance=0.0) for row in rows)


async def _dense(db: Database, what: Cue, *, agent_id: UUID, wanted: Mapping[str, object]) -> list[UUID]:
    if what.vector is None:
        return []
    async with db.work(agent_id) as tx:
        rows = await SQL["dense"].all(tx, agent_id=agent_id, model_id=what.model_id, embedding=what.vector, **wanted)
    return [row["memory_id"] for row in rows]


async def _lexical(db: Database, what: Cue, *, agent_id: UUID, wanted: Mapping[str, object]) -> dict[UUID, float]:
    async with db.work(agent_id) as tx:
        rows = await SQL["lexical"].all(tx, agent_id=agent_id, input=what.text, k1=K1, b=B, **wanted)
    return {row["memory_id"]: row["share"] for row in rows}


def _ranked(rows: Sequence[Record], shares: Mapping[UUID, float]) -> list[Found]:
    hits = [
        Hit(
            similarity=row["similarity"] or 0.0,
            lexical=shares.get(row["memory_id"], 0.0),
            words=row["words"],
            thread=row["thread"],
            place=row["place"],
        )
        for row in rows
    ]
    found = [
        Found(**row, lexical=hit.lexical, relevance=relevance)
        for row, hit, relevance in zip(rows, hits, stretched(relevances(hits)), strict=True)
    ]
    return sorted(found, key=lambda f: (-f.relevance, str(f.memory_id)))
