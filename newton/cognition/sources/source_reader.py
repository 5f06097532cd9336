"""Tools that the sources of a context share: reading until a deadline, and an embedder that caches vectors."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from newton.deadline import RequestDeadline
from newton.errors import ProviderError
from newton.fault_isolation import run_part
from newton.memory.query_vectors import QuestionEmbedder

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


async def embed_input(embedder: "Embedder | None", text: str, deadline: RequestDeadline) -> "Vector | None":
    """Return the vector of an input; None without an embedder, or if it fails or does not answer until the deadline.

    The failure is not reported here: the memory search embeds the same input and reports it.
    """
    if embedder is None:
        return None
    try:
        async with deadline.timeout():
            return (await embedder.embed([text]))[0]
    except (ProviderError, TimeoutError):
        return None


class CachingEmbedder:
    """An embedder that embeds each text once, also when requested concurrently, and uses `known_vectors`."""

    def __init__(self, embedder: "Embedder", known_vectors: "Mapping[str, Vector]") -> None:
        self.name, self.identity, self.dimensions = embedder.name, embedder.identity, embedder.dimensions
        self._embedder, self._known_vectors = embedder, known_vectors
        self._pending: dict[tuple[str, ...], asyncio.Future[list[Vector]]] = {}

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        if all(text in self._known_vectors for text in texts):
            return [self._known_vectors[text] for text in texts]
        key = tuple(texts)
        if key not in self._pending:
            future = asyncio.ensure_future(self._embed_unknown(texts))
            # retrieve the exception, because possibly no task waits for the result any more
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._pending[key] = future
        # the cancellation of one waiting task must not cancel the others
        return await asyncio.shield(self._pending[key])

    async def _embed_unknown(self, texts: Sequence[str]) -> "list[Vector]":
        return await self._embedder.embed(texts)

    def cancel_pending(self) -> None:
        """Cancel the requests that are not finished."""
        for future in self._pending.values():
            future.cancel()


class CachingQuestionEmbedder(CachingEmbedder):
    """A caching embedder with an encoder of questions. It does not begin to embed a text while one is encoded.

    The search of memory waits for the encoder, and concurrent embedding would slow it down.
    """

    def __init__(self, embedder: "Embedder", encoder: QuestionEmbedder, known_vectors: "Mapping[str, Vector]") -> None:
        super().__init__(embedder, known_vectors)
        self._encoder, self._encoding_count = encoder, 0
        self._encoder_is_idle = asyncio.Event()
        self._encoder_is_idle.set()

    async def embed_questions(self, texts: Sequence[str]) -> "list[Vector]":
        self._encoding_count += 1
        self._encoder_is_idle.clear()
        try:
            return await self._encoder.embed_questions(texts)
        finally:
            self._encoding_count -= 1
            if not self._encoding_count:
                self._encoder_is_idle.set()

    async def _embed_unknown(self, texts: Sequence[str]) -> "list[Vector]":
        await self._encoder_is_idle.wait()
        return await super()._embed_unknown(texts)


def cache_vectors(embedder: "Embedder", known_vectors: "Mapping[str, Vector]") -> CachingEmbedder:
    """Return a caching embedder that has an encoder of questions if `embedder` has one."""
    if isinstance(embedder, QuestionEmbedder):
        return CachingQuestionEmbedder(embedder, embedder, known_vectors)
    return CachingEmbedder(embedder, known_vectors)


T = TypeVar("T")


@dataclass(slots=True)
class SourceReader:
    """Reads sources until one deadline. `missing` maps the names of late and failed sources to reasons."""

    deadline: RequestDeadline
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def read_or_default(self, name: str, source: Awaitable[T], *, default: T) -> T:
        """Return the result of the source; `default`, with an entry in `missing`, if it fails or is late.

        Raises TimeoutExceededError for a late source if the request accepts no partial result.
        """
        try:
            async with self.deadline.timeout():
                return await run_part(name, source, default=default, missing=self.missing)
        except TimeoutError:
            self.missing[name] = self.deadline.accept_late(name)
            return default
