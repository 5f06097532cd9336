"""The embedding outbox: a memory commits first and is found by its words; its vector follows when a model is up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import model_id
from newton.memory.reembedding import active

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "outbox.sql")

BATCH = 256
# After so many tries of its own a text is left alone; `newton doctor` shows it.
MOST_ATTEMPTS = 8

_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Waiting:
    memory_id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many memories wait for vectors, how many were given up, and what the last failure said."""

    waiting: int
    given_up: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Drained:
    """What one pass did. `down` says why it ended early: the model answers nothing at all."""

    embedded: int
    failed: int
    down: str | None = None


async def backlog(tx: Tx, *, agent_id: UUID) -> Backlog:
    row = await SQL["count_backlog"].one(tx, agent_id=agent_id, attempts=MOST_ATTEMPTS)
    assert row is not None
    return Backlog(**row)


async def strangers(tx: Tx, *, agent_id: UUID, model_id: UUID) -> int:
    """How many memories only another model has embedded, so that this one does not find them by meaning."""
    row = await SQL["count_without_vector"].one(tx, agent_id=agent_id, model_id=model_id)
    return row["memories"] if row else 0


class Outbox:
    """Empties one agent's outbox with one embedder. Safe beside other workers: the same vector is only kept once."""

    def __init__(self, db: Database, embedder: "Embedder", agent_id: UUID) -> None:
        self._db, self._embedder, self._agent = db, embedder, agent_id
        self._model = model_id(embedder.identity)
        self._registered = False

    async def drain(self, *, most: int | None = None, seen: Callable[[int], None] | None = None) -> Drained:
        """Embeds what waits, up to `most` memories; `seen` is told how many each batch added."""
        embedded = failed = 0
        after = _FIRST
        async with self._db.work(self._agent) as tx:
            if (other := await active(tx, agent_id=self._agent)) not in (None, self._embedder.identity):
                return Drained(0, 0, down=f"memories are found by {other}; `newton reembed` changes that")
        while most is None or embedded + failed < most:
            batch = await self._waiting(after, BATCH if most is None else min(BATCH, most - embedded - failed))
            if not batch:
                break
            after = batch[-1].memory_id
            try:
                landed = await self._embed(batch)
            except ProviderError as error:
                return Drained(embedded, failed, down=error.what)
            embedded, failed = embedded + landed, failed + len(batch) - landed
            if seen:
                seen(landed)
        return Drained(embedded, failed)

    async def _waiting(self, after: UUID, most: int) -> list[Waiting]:
        async with self._db.work(self._agent) as tx:
            rows = await SQL["list_waiting"].all(
                tx, agent_id=self._agent, after=after, max_rows=most, attempts=MOST_ATTEMPTS
            )
        return [Waiting(**row) for row in rows]

    async def _embed(self, batch: Sequence[Waiting]) -> int:
        """How many of the batch got their vectors. Raises ProviderError when the model is down for any text."""
        try:
            vectors = await self._embedder.embed([item.text for item in batch])
        except ProviderError:
            await self._embedder.embed(["still there?"])
            return await self._one_by_one(batch)
        await self._deliver(batch, vectors)
        return len(batch)

    async def _one_by_one(self, batch: Sequence[Waiting]) -> int:
        """The model is up but refuses the batch: find the text that it cannot take, and let the others through."""
        landed = 0
        for item in batch:
            try:
                vectors = await self._embedder.embed([item.text])
            except ProviderError as error:
                async with self._db.work(self._agent) as tx:
                    await SQL["record_failure"].run(
                        tx, agent_id=self._agent, memory_id=item.memory_id, error=error.what
                    )
            else:
                await self._deliver([item], vectors)
                landed += 1
        return landed

    async def _deliver(self, batch: Sequence[Waiting], vectors: "Sequence[Vector]") -> None:
        async with self._db.work(self._agent) as tx:
            await self._register(tx)
            await SQL["store_embeddings"].run(
                tx,
                agent_id=self._agent,
                model_id=self._model,
                memory_ids=[item.memory_id for item in batch],
                # asyncpg would take a bare array for one more dimension of the list
                vectors=[HalfVector(vector) for vector in vectors],
            )

    async def _register(self, tx: Tx) -> None:
        if not self._registered:
            await SQL["register_model"].run(
                tx,
                model_id=self._model,
                identity=self._embedder.identity,
                dimensions=self._embedder.dimensions,
            )
            await SQL["set_first_model"].run(tx, agent_id=self._agent, model_id=self._model)
            self._registered = True
