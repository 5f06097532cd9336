"""Change of the embedding model: new vectors are stored beside the old ones, then one transaction switches to them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import derive_model_id

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "reembedding.sql")

BATCH = 256
MAX_TEXTS_PER_CALL = 128  # of the embedding model; a busy machine embeds so many within seconds


@dataclass(frozen=True, slots=True)
class ReembedResult:
    """The number of vectors computed, whether the new model is in use, and the reason if the run ended early."""

    embedded: int
    is_active: bool
    stopped_by: str | None = None


async def read_active_model(tx: Tx, *, agent_id: UUID) -> str | None:
    """Return the identity of the embedding model that the agent uses; None before the first vector is stored."""
    row = await SQL["get_active_model"].fetch_one(tx, agent_id=agent_id)
    return row["identity"] if row else None


async def reembed(
    db: Database,
    embedder: "Embedder",
    *,
    agent_id: UUID,
    now: datetime,
    limit: int | None = None,
    on_progress: Callable[[int], None] = lambda count: None,
) -> ReembedResult:
    """Compute up to `limit` missing vectors of the new model, and switch to this model when none is missing.

    Until then the old model is used. An interrupted run is resumed by the next one.
    """
    model, embedded = derive_model_id(embedder.identity), 0
    async with db.transaction(agent_id) as tx:
        if await read_active_model(tx, agent_id=agent_id) in (None, embedder.identity):
            return ReembedResult(0, is_active=True)
        await SQL["insert_model"].execute(
            tx, model_id=model, identity=embedder.identity, dimensions=embedder.dimensions
        )
    while limit is None or embedded < limit:
        size = BATCH if limit is None else min(BATCH, limit - embedded)
        try:
            stored = await _embed_batch(db, embedder, agent_id=agent_id, size=size)
        except ProviderError as error:
            return ReembedResult(embedded, is_active=False, stopped_by=error.what)
        if not stored and await _switch_model(db, model, agent_id=agent_id, now=now):
            return ReembedResult(embedded, is_active=True)
        embedded += stored
        on_progress(stored)
    return ReembedResult(embedded, is_active=False)


async def _embed_batch(db: Database, embedder: "Embedder", *, agent_id: UUID, size: int) -> int:
    """Embed one batch and return the number of vectors stored. No transaction is open while the model works."""
    model = derive_model_id(embedder.identity)
    async with db.transaction(agent_id) as tx:
        rows = await SQL["list_without_vector"].fetch_all(tx, agent_id=agent_id, model_id=model, max_rows=size)
    if not rows:
        return 0
    vectors = await embed_texts(embedder, [text for row in rows for text in (row["text"], *row["windows"])])
    own, windows = split_vectors(vectors, [len(row["windows"]) for row in rows])
    ids = [row["memory_id"] for row in rows]
    async with db.transaction(agent_id) as tx:
        await SQL["lock_memories"].execute(tx, agent_id=agent_id, memory_ids=ids)
        await SQL["insert_embeddings"].execute(
            tx,
            agent_id=agent_id,
            model_id=model,
            memory_ids=ids,
            vectors=[HalfVector(vector) for vector in own],
            **make_window_arguments(ids, windows),
        )
    return len(rows)


async def _switch_model(db: Database, model: UUID, *, agent_id: UUID, now: datetime) -> bool:
    """Make the model the active one; return False if a memory without a vector of it was added in the meantime."""
    async with db.transaction(agent_id) as tx:
        await SQL["lock_active_model"].execute(tx, agent_id=agent_id)
        if await SQL["list_without_vector"].fetch_all(tx, agent_id=agent_id, model_id=model, max_rows=1):
            return False
        await SQL["switch_active_model"].execute(tx, agent_id=agent_id, model_id=model, now=now)
        await SQL["delete_inactive_embeddings"].execute(tx, agent_id=agent_id)
        return True


async def embed_texts(
    embedder: "Embedder", texts: Sequence[str], on_progress: Callable[[int], None] = lambda embedded: None
) -> "list[Vector]":
    """Return the vectors of any number of texts. Raises ProviderError if the model fails.

    `on_progress` is called after each call of the model, with 0 because nothing is stored yet.
    """
    vectors: list[Vector] = []
    for start in range(0, len(texts), MAX_TEXTS_PER_CALL):
        vectors += await embedder.embed(texts[start : start + MAX_TEXTS_PER_CALL])
        on_progress(0)
    return vectors


def split_vectors(
    vectors: "Sequence[Vector]", window_counts: Sequence[int]
) -> "tuple[list[Vector], list[Sequence[Vector]]]":
    """Split vectors, of each memory first its own and then those of its windows, into both lists by memory."""
    own: list[Vector] = []
    windows: list[Sequence[Vector]] = []
    start = 0
    for count in window_counts:
        own.append(vectors[start])
        windows.append(vectors[start + 1 : start + 1 + count])
        start += 1 + count
    return own, windows


def make_window_arguments(memory_ids: Sequence[UUID], windows: "Sequence[Sequence[Vector]]") -> dict[str, object]:
    """Return the vectors of the windows as arguments of a query: parallel arrays of ids, positions and vectors."""
    rows = list(_iter_windows(memory_ids, windows))
    return {
        "window_ids": [memory_id for memory_id, _, _ in rows],
        "window_positions": [position for _, position, _ in rows],
        "window_vectors": [vector for _, _, vector in rows],
    }


def _iter_windows(
    memory_ids: Sequence[UUID], windows: "Sequence[Sequence[Vector]]"
) -> Iterator[tuple[UUID, int, HalfVector]]:
    for memory_id, own in zip(memory_ids, windows, strict=True):
        for position, vector in enumerate(own):
            yield memory_id, position, HalfVector(vector)
