"""The embedding model interface, independent of the provider."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Maps texts to unit vectors. `identity` names model, weights and pooling. Only equal identities are comparable."""

    @property
    def name(self) -> str:
        """Return the name of the model, as clients of OpenAI's API send it."""
        ...

    @property
    def identity(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return one float32 vector of `dimensions` for each text, in order. Raises ProviderError on failure."""
        ...


def normalize_rows(rows: NDArray[np.floating]) -> list[Vector]:
    """Return the rows scaled to unit length; zero rows stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list((rows / np.maximum(lengths, 1e-12)).astype(np.float32))
