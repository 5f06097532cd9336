"""The embedding outbox: a memory commits first and is found by its words; its vector follows when a model is up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory.reembedding import read_active_model

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "outbox.sql")

BATCH = 256
# After so many tries of its own a text is left alone; `newton doctor` shows it.
MAX_ATTEMPTS = 8

_FIRST_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class PendingText:
    memory_id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class OutboxBacklog:
    """How many memories wait for vectors, how many were given up, and what the last failure said."""

    waiting: int
    given_up: int
    error: str | None


@dataclass(frozen=True, slots=True)
class DrainResult:
    """What one pass did. `down` says why it ended early: the model answers nothing at all."""

    embedded: int
    failed: int
    stopped_by: str | None = None


async def read_backlog(tx: Tx, *, agent_id: UUID) -> OutboxBacklog:
    row = await SQL["count_backlog"].fetch_one(tx, agent_id=agent_id, attempts=MAX_ATTEMPTS)
    assert row is not None
    return OutboxBacklog(**row)


async def count_embedded_elsewhere(tx: Tx, *, agent_id: UUID, model_id: UUID) -> int:
    """How many memories only another model has embedded, so that this one does not find them by meaning."""
    row = await SQL["count_without_vector"].fetch_one(tx, agent_id=agent_id, model_id=model_id)
    return row["memories"] if row else 0


class EmbeddingOutbox:
    """Empties one agent's outbox with one embedder. Safe beside other workers: the same vector is only kept once."""

    def __init__(self, db: Database, embedder: "Embedder", agent_id: UUID) -> None:
        self._db, self._embedder, self._agent = db, embedder, agent_id
        self._model = derive_model_id(embedder.identity)
        self._registered = False

    async def drain(self, *, limit: int | None = None, on_progress: Callable[[int], None] | None = None) -> DrainResult:
        """Embeds what waits, up to `most` memories; `seen` is told how many each batch added."""
        embedded = failed = 0
        after = _FIRST_ID
        async with self._db.transaction(self._agent) as tx:
            if (other := await read_active_model(tx, agent_id=self._agent)) not in (None, self._embedder.identity):
                return DrainResult(0, 0, stopped_by=f"memories are found by {other}; `newton reembed` changes that")
        while limit is None or embedded + failed < limit:
            batch = await self._next_batch(after, BATCH if limit is None else min(BATCH, limit - embedded - failed))
            if not batch:
                break
            after = batch[-1].memory_id
            try:
                landed = await self._embed_batch(batch)
            except ProviderError as error:
                return DrainResult(embedded, failed, stopped_by=error.what)
            embedded, failed = embedded + landed, failed + len(batch) - landed
            if on_progress:
                on_progress(landed)
        return DrainResult(embedded, failed)

    async def _next_batch(self, after: UUID, limit: int) -> list[PendingText]:
        async with self._db.transaction(self._agent) as tx:
            rows = await SQL["list_waiting"].fetch_all(
                tx, agent_id=self._agent, after=after, max_rows=limit, attempts=MAX_ATTEMPTS
            )
        return [PendingText(**row) for row in rows]

    async def _embed_batch(self, batch: Sequence[PendingText]) -> int:
        """How many of the batch got their vectors. Raises ProviderError when the model is down for any text."""
        try:
            vectors = await self._embedder.embed([item.text for item in batch])
        except ProviderError:
            await self._embedder.embed(["still there?"])
            return await self._embed_one_by_one(batch)
        await self._store_vectors(batch, vectors)
        return len(batch)

    async def _embed_one_by_one(self, batch: Sequence[PendingText]) -> int:
        """The model is up but refuses the batch: find the text that it cannot take, and let the others through."""
        landed = 0
        for item in batch:
            try:
                vectors = await self._embedder.embed([item.text])
            except ProviderError as error:
                async with self._db.transaction(self._agent) as tx:
                    await SQL["record_failure"].execute(
                        tx, agent_id=self._agent, memory_id=item.memory_id, error=error.what
                    )
            else:
                await self._store_vectors([item], vectors)
                landed += 1
        return landed

    async def _store_vectors(self, batch: Sequence[PendingText], vectors: "Sequence[Vector]") -> None:
        async with self._db.transaction(self._agent) as tx:
            await self._register_model(tx)
            await SQL["store_embeddings"].execute(
                tx,
                agent_id=self._agent,
                model_id=self._model,
                memory_ids=[item.memory_id for item in batch],
                # asyncpg would take a bare array for one more dimension of the list
                vectors=[HalfVector(vector) for vector in vectors],
            )

    async def _register_model(self, tx: Tx) -> None:
        if not self._registered:
            await SQL["register_model"].execute(
                tx,
                model_id=self._model,
                identity=self._embedder.identity,
                dimensions=self._embedder.dimensions,
            )
            await SQL["set_first_model"].execute(tx, agent_id=self._agent, model_id=self._model)
            self._registered = True
