"""The embedder that the sources of a context share. It decides in which order they embed texts and encode questions."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from newton.memory.query_vectors import QuestionEmbedder

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


class CachingEmbedder:
    """An embedder that embeds each text once, also when requested concurrently, and uses `known_vectors`.

    Texts are not embedded while questions are encoded.
    """

    def __init__(self, embedder: "Embedder", known_vectors: "Mapping[str, Vector]") -> None:
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self._embedder, self._known_vectors = embedder, known_vectors
        self._pending: dict[tuple[str, ...], asyncio.Future[list[Vector]]] = {}
        self._encoding_count = 0
        self._encoder_is_idle = asyncio.Event()
        self._encoder_is_idle.set()

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        if all(text in self._known_vectors for text in texts):
            return [self._known_vectors[text] for text in texts]
        key = tuple(texts)
        if key not in self._pending:
            future = asyncio.ensure_future(self._embed_after_questions(texts))
            # retrieve the exception, because possibly no task waits for the result any more
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._pending[key] = future
        # the cancellation of one waiting task must not cancel the others
        return await asyncio.shield(self._pending[key])

    async def embed_questions(self, texts: Sequence[str]) -> "list[Vector]":
        """Return the vectors by the encoder of questions; without one, those of `embed`, which are computed once."""
        if not isinstance(self._embedder, QuestionEmbedder):
            return await self.embed(texts)
        self._encoding_count += 1
        self._encoder_is_idle.clear()
        try:
            return await self._embedder.embed_questions(texts)
        finally:
            self._encoding_count -= 1
            if not self._encoding_count:
                self._encoder_is_idle.set()

    async def _embed_after_questions(self, texts: Sequence[str]) -> "list[Vector]":
        """Embed texts when no question is being encoded: the search waits for that, and would share the cores."""
        await self._encoder_is_idle.wait()
        return await self._embedder.embed(texts)

    def cancel_pending(self) -> None:
        """Cancel the requests that are not finished."""
        for future in self._pending.values():
            future.cancel()
