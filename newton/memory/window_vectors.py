"""Vectors of memories and of the windows of long texts: embedding, and arguments of the queries that store them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from pgvector import HalfVector

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

MAX_TEXTS_PER_CALL = 512  # of the embedding model


async def embed_texts(embedder: "Embedder", texts: Sequence[str]) -> "list[Vector]":
    """Return the vectors of any number of texts. Raises ProviderError if the model fails."""
    vectors: list[Vector] = []
    for start in range(0, len(texts), MAX_TEXTS_PER_CALL):
        vectors += await embedder.embed(texts[start : start + MAX_TEXTS_PER_CALL])
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
