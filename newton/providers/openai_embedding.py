"""Embeddings from any OpenAI-compatible endpoint."""

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np

from newton.errors import ProviderError
from newton.providers import token_counter
from newton.providers.embedding import Vector, normalize_rows
from newton.providers.openai_chat import FAILURES, ModelEndpoint, make_client
from newton.providers.stream_accumulator import LenientModel
from newton.settings import Settings
from newton.telemetry import detached_span

# OpenAI's limits are 2,048 texts, 8,191 tokens a text and 300,000 tokens a request.
EMBED_TEXTS = 256
EMBED_TEXT_TOKENS = 8_000
EMBED_REQUEST_TOKENS = 250_000


class _Row(LenientModel):
    index: int
    embedding: list[float]


class _Rows(LenientModel):
    data: list[_Row]


class OpenAIEmbedder:
    """An Embedder. Texts are truncated to 8,000 tokens."""

    def __init__(self, settings: Settings) -> None:
        self._endpoint = ModelEndpoint(
            client=make_client(settings),
            model=settings.embedding_model,
            setting="NEWTON_EMBEDDING_MODEL",
            seconds=settings.llm_timeout,
        )
        self.dimensions = settings.embedding_dimensions
        self.identity = f"{settings.embedding_model}/{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed as `Embedder.embed`, in requests of at most 256 texts, each with its own deadline."""
        requests = await asyncio.to_thread(lambda: list(_batch_texts(texts)))
        return [vector for request in requests for vector in await self._embed_batch(request)]

    async def _embed_batch(self, texts: list[str]) -> list[Vector]:
        deadline = self._endpoint.deadline()
        try:
            with detached_span("embeddings", model=self._endpoint.model, texts=len(texts)):
                answer = await self._endpoint.call(lambda: self._send_request(texts), deadline=deadline)
            rows = sorted(_Rows.model_validate(answer).data, key=lambda row: row.index)
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
            what = f"The embedding model {self._endpoint.model} gave {len(lengths)} vectors for {texts} texts."
            raise ProviderError(what, hint="Try again, or set NEWTON_EMBEDDING_MODEL to another model.")
        if wrong := set(lengths) - {self.dimensions}:
            what = f"The embedding model {self._endpoint.model} gave vectors of {wrong.pop()} numbers."
            hint = f"Set NEWTON_EMBEDDING_DIMENSIONS to that; {self.dimensions} was requested."
            raise ProviderError(what, hint=hint)


def _batch_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order in batches within the endpoint's limits. An empty text, which it rejects, becomes a
    space."""
    request: list[str] = []
    used = 0
    for text in texts:
        readable = token_counter.truncate(text, max_tokens=EMBED_TEXT_TOKENS) or " "
        cost = token_counter.count(readable)
        if request and (len(request) == EMBED_TEXTS or used + cost > EMBED_REQUEST_TOKENS):
            yield request
            request, used = [], 0
        request.append(readable)
        used += cost
    if request:
        yield request
