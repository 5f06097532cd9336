"""Embedding model at OpenAI or a compatible server."""

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np

from newton.errors import ProviderError
from newton.providers import token_counter
from newton.providers.embedding import Vector, normalize_rows
from newton.providers.model_endpoint import FAILURES, make_endpoint
from newton.providers.stream_accumulator import LenientModel
from newton.settings import Settings
from newton.telemetry import detached_span

# OpenAI's limits are 2,048 texts, 8,191 tokens per text and 300,000 tokens per request.
EMBED_TEXTS, EMBED_TEXT_TOKENS, EMBED_REQUEST_TOKENS = 256, 8_000, 250_000


class _Row(LenientModel):
    index: int
    embedding: list[float]


class _Rows(LenientModel):
    data: list[_Row]


class OpenAIEmbedder:
    """An embedder that calls OpenAI's embeddings API. Texts are truncated to 8,000 tokens."""

    def __init__(self, settings: Settings) -> None:
        self._endpoint = make_endpoint(settings, settings.embedding_model, "NEWTON_EMBEDDING_MODEL")
        self.name, self.dimensions = settings.embedding_model, settings.embedding_dimensions
        self.identity = f"{self.name}/{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vector of each text, in order, from batches of at most 256. Each batch has its own deadline.

        Raises ProviderError if the server fails.
        """
        batches = await asyncio.to_thread(lambda: list(_batch_texts(texts)))
        return [vector for batch in batches for vector in await self._embed_batch(batch)]

    async def _embed_batch(self, texts: list[str]) -> list[Vector]:
        """Return the unit vectors of one batch, in order. Raises ProviderError if the server fails."""
        deadline = self._endpoint.deadline()
        try:
            with detached_span("embeddings", model=self._endpoint.model, texts=len(texts)):
                response = await self._endpoint.call(lambda: self._send_request(texts), deadline=deadline)
            rows = sorted(_Rows.model_validate(response).data, key=lambda row: row.index)
        except FAILURES as error:
            self._endpoint.record_result(error)
            raise self._endpoint.to_provider_error(error) from None
        self._endpoint.record_result(None)
        self._check_dimensions([len(row.embedding) for row in rows], texts=len(texts))
        vectors = np.array([row.embedding for row in rows], dtype=np.float64)
        if not np.isfinite(vectors).all():
            raise self._endpoint.to_provider_error(ValueError())
        return normalize_rows(vectors)

    async def _send_request(self, texts: list[str]) -> object:
        return await self._endpoint.client.embeddings.create(
            model=self._endpoint.model, input=texts, dimensions=self.dimensions, encoding_format="float"
        )

    def _check_dimensions(self, lengths: Sequence[int], *, texts: int) -> None:
        if len(lengths) != texts:
            what = f"The embedding model {self._endpoint.model} returned {len(lengths)} vectors for {texts} texts."
            raise ProviderError(what, hint="Try again, or set NEWTON_EMBEDDING_MODEL to another model.")
        if wrong := set(lengths) - {self.dimensions}:
            what = f"The embedding model {self._endpoint.model} returned vectors of {wrong.pop()} dimensions."
            hint = f"Set NEWTON_EMBEDDING_DIMENSIONS to the dimensions of the model; {self.dimensions} were requested."
            raise ProviderError(what, hint=hint)


def _batch_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield batches of texts within the limits of the API. Empty texts become a space, because the API rejects them."""
    batch, total = list[str](), 0
    for text in texts:
        truncated = token_counter.truncate(text, max_tokens=EMBED_TEXT_TOKENS) or " "
        tokens = token_counter.count(truncated)
        if batch and (len(batch) == EMBED_TEXTS or total + tokens > EMBED_REQUEST_TOKENS):
            yield batch
            batch, total = [], 0
        batch.append(truncated)
        total += tokens
    if batch:
        yield batch
