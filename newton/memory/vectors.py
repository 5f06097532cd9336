"""Computation of the vectors of memories: the worker of the outbox, and the change of the embedding model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory.memory import Kind, StandingType

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "vectors.sql")

BATCH = 256
MAX_TEXTS_PER_CALL = 128  # of the embedding model; a busy machine embeds so many within seconds


@dataclass(frozen=True, slots=True)
class ReembedResult:
    """The result of computing the vectors of another embedding model.

    `embedded` is their number, `is_active` is True if the agent uses the new model now, and `stopped_by` is the reason
    if the run ended early.
    """

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
    """Compute up to `limit` missing vectors of the new model `embedder`; make it the agent's when none is missing.

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
    """Embed one batch of at most `size` memories and return the number of vectors stored.

    No transaction is open while the model works.
    """
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
    """Split a flat list (for each memory its vector, then those of its windows) into vectors and window vectors."""
    own: list[Vector] = []
    windows: list[Sequence[Vector]] = []
    start = 0
    for count in window_counts:
        own.append(vectors[start])
        windows.append(vectors[start + 1 : start + 1 + count])
        start += 1 + count
    return own, windows


def make_window_arguments(memory_ids: Sequence[UUID], windows: "Sequence[Sequence[Vector]]") -> dict[str, object]:
    """Return the vectors of the windows as parameters of an SQL query: parallel lists of ids, positions and vectors."""
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


MAX_ATTEMPTS = 8  # to embed a text; `newton doctor` shows texts that failed as often


STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainControl:
    """Options to observe and stop a run that embeds the memories of the outbox, `batch` memories at a time.

    `on_progress` is called with the number of memories whose vectors were stored, and with 0 after each call of the
    model. The run ends before the next batch once `is_stopped` returns True.
    """

    batch: int = BATCH
    on_progress: Callable[[int], None] = lambda embedded: None
    is_stopped: Callable[[], bool] = lambda: False


RUN_TO_THE_END = DrainControl()


class StandingFinder(Protocol):
    """Interface of a function that finds a standing wish (instruction or preference for later requests) in a text.

    It returns the type of the wish, or None. `vector` is that of the text, by the model `vector_model`.
    """

    def __call__(self, embedded_text: str, vector: "Vector", *, vector_model: str) -> StandingType | None: ...


class PendingText(NamedTuple):
    """A memory that has no vector yet, the text to embed, and the windows (groups of sentences) of a long text.

    `is_personal` is True for a message or a fact of a person.
    """

    memory_id: UUID
    text: str
    is_personal: bool
    windows: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutboxBacklog:
    """The memories without a vector: how many wait, how many failed MAX_ATTEMPTS times, and the last error."""

    waiting: int
    given_up: int
    error: str | None


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The counts of memories embedded and failed in one pass. `stopped_by` is the reason if it ended early."""

    embedded: int
    failed: int
    stopped_by: str | None = None


async def read_backlog(tx: Tx, *, agent_id: UUID) -> OutboxBacklog:
    """Return how many memories wait for a vector, how many failed MAX_ATTEMPTS times, and the last error."""
    row = await SQL["count_backlog"].fetch_one(tx, agent_id=agent_id, attempts=MAX_ATTEMPTS)
    assert row is not None
    return OutboxBacklog(**row)


async def count_embedded_elsewhere(tx: Tx, *, agent_id: UUID, model_id: UUID) -> int:
    """Count the memories that have a vector of another embedding model, but none of this one."""
    row = await SQL["count_without_vector"].fetch_one(tx, agent_id=agent_id, model_id=model_id)
    return row["memories"] if row else 0


def find_no_standing(embedded_text: str, vector: "Vector", *, vector_model: str) -> StandingType | None:
    """Return None: the default for `StandingFinder`, which finds no wish in any text."""
    return None


class EmbeddingOutbox:
    """A worker that computes the missing vectors of one agent's memories.

    Several workers may run at once: each vector is stored once. Messages and facts of a person are marked if
    `find_standing` finds an instruction or a preference for later requests in them.
    """

    def __init__(
        self, db: Database, embedder: "Embedder", agent_id: UUID, *, find_standing: StandingFinder = find_no_standing
    ) -> None:
        self._db, self._embedder, self._agent, self._find_standing = db, embedder, agent_id, find_standing
        self._model = derive_model_id(embedder.identity)
        self._registered = False

    async def drain(
        self, *, limit: int | None = None, excluded: Sequence[Kind] = (), control: DrainControl = RUN_TO_THE_END
    ) -> DrainResult:
        """Embed up to `limit` waiting memories in batches, the oldest first; None embeds all.

        Memories of the `excluded` kinds stay in the outbox.
        """
        embedded = failed = 0
        after, is_complete = UUID(int=0), False
        while not is_complete and (limit is None or embedded + failed < limit):
            if control.is_stopped():
                return DrainResult(embedded, failed, stopped_by=STOPPED)
            size = control.batch if limit is None else min(control.batch, limit - embedded - failed)
            async with self._db.transaction(self._agent) as tx:
                if not after.int and (reason := await self._find_other_model(tx)):
                    return DrainResult(embedded, failed, reason)
                batch = await self._next_batch(tx, after, size, excluded)
            if not batch:
                break
            after, is_complete = batch[-1].memory_id, len(batch) < size
            try:
                stored = await self._embed_batch(batch, control)
            except ProviderError as error:
                return DrainResult(embedded, failed, stopped_by=error.what)
            embedded, failed = embedded + stored, failed + len(batch) - stored
            control.on_progress(stored)
        return DrainResult(embedded, failed)

    async def _find_other_model(self, tx: Tx) -> str | None:
        """Return why this model may not embed: another one is active; else None. Record whether it is active."""
        active = await read_active_model(tx, agent_id=self._agent)
        self._registered = active == self._embedder.identity
        if active is None or self._registered:
            return None
        return f"the active embedding model is {active}; `newton reembed` changes it"

    async def _next_batch(self, tx: Tx, after: UUID, limit: int, excluded: Sequence[Kind]) -> list[PendingText]:
        rows = await SQL["list_waiting"].fetch_all(
            tx,
            agent_id=self._agent,
            after=after,
            max_rows=limit,
            attempts=MAX_ATTEMPTS,
            excluded_kinds=list(excluded),
        )
        return [PendingText(*row) for row in rows]

    async def _embed_batch(self, batch: Sequence[PendingText], control: DrainControl) -> int:
        """Embed a batch and return the number of vectors stored. Raises ProviderError if the model is not available."""
        try:
            texts = [text for item in batch for text in (item.text, *item.windows)]
            vectors = await embed_texts(self._embedder, texts, control.on_progress)
        except ProviderError:
            await self._embedder.embed(["test"])  # raises if the model is down
            return await self._embed_one_by_one(batch, control)
        await self._store_vectors(batch, vectors)
        return len(batch)

    async def _embed_one_by_one(self, batch: Sequence[PendingText], control: DrainControl) -> int:
        """Embed each text by itself, record those that the model rejects, and return the number of vectors stored."""
        stored = 0
        for item in batch:
            try:
                vectors = await embed_texts(self._embedder, [item.text, *item.windows], control.on_progress)
            except ProviderError as error:
                failure = {"agent_id": self._agent, "memory_id": item.memory_id, "error": error.what}
                async with self._db.transaction(self._agent) as tx:
                    await SQL["record_failure"].execute(tx, **failure)
            else:
                await self._store_vectors([item], vectors)
                stored += 1
        return stored

    async def _store_vectors(self, batch: Sequence[PendingText], vectors: "Sequence[Vector]") -> None:
        """Store the vectors of a batch and of its windows, and mark the standing wishes in it, in one transaction."""
        own, windows = split_vectors(vectors, [len(item.windows) for item in batch])
        marks = self._find_marks(batch, own)
        async with self._db.transaction(self._agent) as tx:
            await self._register_model(tx)
            await SQL["hold_active_model"].execute(tx, agent_id=self._agent)
            await SQL["store_embeddings"].execute(
                tx,
                agent_id=self._agent,
                model_id=self._model,
                memory_ids=[item.memory_id for item in batch],
                # asyncpg would treat a plain array as another dimension of the list
                vectors=[HalfVector(vector) for vector in own],
                **make_window_arguments([item.memory_id for item in batch], windows),
                standing_ids=list(marks),
                standings=list(marks.values()),
            )

    def _find_marks(self, batch: Sequence[PendingText], vectors: "Sequence[Vector]") -> dict[UUID, StandingType]:
        model, marks = self._embedder.identity, dict[UUID, StandingType]()
        for item, vector in zip(batch, vectors, strict=True):
            if item.is_personal and (standing := self._find_standing(item.text, vector, vector_model=model)):
                marks[item.memory_id] = standing
        return marks

    async def _register_model(self, tx: Tx) -> None:
        if not self._registered:
            await SQL["register_model"].execute(
                tx, model_id=self._model, identity=self._embedder.identity, dimensions=self._embedder.dimensions
            )
            await SQL["set_first_model"].execute(tx, agent_id=self._agent, model_id=self._model)
            self._registered = True
