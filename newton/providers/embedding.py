"""What Newton needs of an embedding model, whoever runs it."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors whose inner product is the likeness of their meaning.

    `identity` names model, weights and pooling: vectors of different identities are never compared.
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector of `dimensions` float32 for each text, in order. Raises ProviderError when it cannot."""
        ...


def normalize_rows(rows: NDArray[np.floating]) -> list[Vector]:
    """The rows scaled to length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list((rows / np.maximum(lengths, 1e-12)).astype(np.float32))
