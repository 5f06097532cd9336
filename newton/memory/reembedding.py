"""A change of the embedding model: the new one makes its vectors beside the old ones, then takes over at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import model_id

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "reembedding.sql")

BATCH = 256


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What one run did. `active`: the new model answers from now on. `down` says why it ended before that."""

    embedded: int
    active: bool
    down: str | None = None


async def active(tx: Tx, *, agent_id: UUID) -> str | None:
    """The identity of the model by which the agent's memories are found; None as long as none has a vector."""
    row = await SQL["get_active_model"].one(tx, agent_id=agent_id)
    return row["identity"] if row else None


async def reembed(
    db: Database,
    embedder: "Embedder",
    *,
    agent_id: UUID,
    now: datetime,
    most: int | None = None,
    seen: Callable[[int], None] = lambda many: None,
) -> Reembedded:
    """Makes what vectors of this model are missing, at most so many, and lets it take over once none is.

    Until then the old model answers. A run that was killed is finished by another; vectors that are made stay.
    """
    model, embedded = model_id(embedder.identity), 0
    async with db.work(agent_id) as tx:
        if await active(tx, agent_id=agent_id) in (None, embedder.identity):
            return Reembedded(0, active=True)
        await SQL["insert_model"].run(tx, model_id=model, identity=embedder.identity, dimensions=embedder.dimensions)
    while most is None or embedded < most:
        size = BATCH if most is None else min(BATCH, most - embedded)
        try:
            made = await _filled(db, embedder, agent_id=agent_id, size=size)
        except ProviderError as error:
            return Reembedded(embedded, active=False, down=error.what)
        if not made and await _flipped(db, model, agent_id=agent_id, now=now):
            return Reembedded(embedded, active=True)
        embedded += made
        seen(made)
    return Reembedded(embedded, active=False)


async def _filled(db: Database, embedder: "Embedder", *, agent_id: UUID, size: int) -> int:
    """Reads, thinks, writes: no transaction is open while the model works."""
    model = model_id(embedder.identity)
    async with db.work(agent_id) as tx:
        rows = await SQL["list_without_vector"].all(tx, agent_id=agent_id, model_id=model, max_rows=size)
    if not rows:
        return 0
    vectors = await embedder.embed([row["text"] for row in rows])
    ids = [row["memory_id"] for row in rows]
    async with db.work(agent_id) as tx:
        await _keep(tx, model, ids, vectors, agent_id=agent_id)
    return len(rows)


async def _keep(
    tx: Tx, model: UUID, memory_ids: Sequence[UUID], vectors: "Sequence[Vector]", *, agent_id: UUID
) -> None:
    await SQL["lock_memories"].run(tx, agent_id=agent_id, memory_ids=memory_ids)
    await SQL["insert_embeddings"].run(
        tx,
        agent_id=agent_id,
        model_id=model,
        memory_ids=memory_ids,
        vectors=[HalfVector(vector) for vector in vectors],
    )


async def _flipped(db: Database, model: UUID, *, agent_id: UUID, now: datetime) -> bool:
    """Whether the model took over; not if something came in meanwhile that it has no vector of."""
    async with db.work(agent_id) as tx:
        await SQL["lock_active_model"].run(tx, agent_id=agent_id)
        if await SQL["list_without_vector"].all(tx, agent_id=agent_id, model_id=model, max_rows=1):
            return False
        await SQL["switch_active_model"].run(tx, agent_id=agent_id, model_id=model, now=now)
        await SQL["delete_inactive_embeddings"].run(tx, agent_id=agent_id)
        return True
