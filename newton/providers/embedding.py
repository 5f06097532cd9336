"""Interface of embedding models, independent of the provider."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Interface of a model that maps texts to unit vectors.

    `identity` names model, weights and pooling. Only vectors of models with equal identity can be compared.
    """

    @property
    def name(self) -> str:
        """Return the name of the model as clients of OpenAI's API know it."""
        ...

    @property
    def identity(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one float32 unit vector per text, in order, each with `dimensions` elements.

        Raises ProviderError if the model fails.
        """
        ...


def normalize_rows(rows: NDArray[np.floating]) -> list[Vector]:
    """Scale each row to unit length. Rows of zeros stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list((rows / np.maximum(lengths, 1e-12)).astype(np.float32))
