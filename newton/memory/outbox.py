"""The embedding outbox: stored memories whose vectors are not computed yet, and which only a search by words finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from pgvector import HalfVector

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory.memory import Kind, StandingType
from newton.memory.reembedding import embed_texts, make_window_arguments, read_active_model, split_vectors

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.memory", "outbox.sql")

BATCH = 256
MAX_ATTEMPTS = 8  # to embed a text; `newton doctor` shows texts that failed as often


STOPPED = "it was stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainControl:
    """Observation and interruption of a run that embeds the memories of the outbox.

    The run takes `batch` memories at a time; `on_progress` is called with the number of memories that were stored with
    their vectors, and with 0 after each call of the model. The run ends before the next batch once `is_stopped` returns
    True.
    """

    batch: int = BATCH
    on_progress: Callable[[int], None] = lambda embedded: None
    is_stopped: Callable[[], bool] = lambda: False


RUN_TO_THE_END = DrainControl()


class StandingFinder(Protocol):
    """Tells whether a text with this vector of a model states a standing wish."""

    def __call__(self, embedded_text: str, vector: "Vector", *, vector_model: str) -> StandingType | None: ...


class PendingText(NamedTuple):
    """A memory that has no vector yet, the text to embed, and its windows if it is long.

    `is_personal` is True for a message or a fact of a person.
    """

    memory_id: UUID
    text: str
    is_personal: bool
    windows: Sequence[str]


@dataclass(frozen=True, slots=True)
class OutboxBacklog:
    """The counts of memories that wait for a vector and of those that failed too often, and the last error."""

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
    """Return the counts of memories that wait for a vector and of those that failed too often, and the last error."""
    row = await SQL["count_backlog"].fetch_one(tx, agent_id=agent_id, attempts=MAX_ATTEMPTS)
    assert row is not None
    return OutboxBacklog(**row)


async def count_embedded_elsewhere(tx: Tx, *, agent_id: UUID, model_id: UUID) -> int:
    """Count the memories that have a vector of another embedding model, but none of this one."""
    row = await SQL["count_without_vector"].fetch_one(tx, agent_id=agent_id, model_id=model_id)
    return row["memories"] if row else 0


def find_no_standing(embedded_text: str, vector: "Vector", *, vector_model: str) -> StandingType | None:
    """Return None: no text is taken for a standing wish."""
    return None


class EmbeddingOutbox:
    """A worker that computes the missing vectors of one agent's memories.

    Several workers may run at once: each vector is stored once. `find_standing` tells by text and vector which messages
    and facts of a person state a standing wish; they are marked.
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

        Memories of the `excluded` kinds go on waiting.
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
        """Return why this model may not embed: another one is active. Note whether this one is."""
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
        """Embed each text by itself, record the texts that the model rejects, and return the number of vectors."""
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
