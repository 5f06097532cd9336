"""A transformer that reads two statements together and says whether the newer one replaces the older one.

It has the six layers of all-MiniLM-L6-v2, quantized to int8, of which `scripts/fit-change-reader` trained the upper
four further. The vectors of its words and the matrices of its two lowest layers are in the file of the embedding model.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newton.providers.local.base_weights import DATA, load_layers, load_word_table
from newton.providers.minilm import build_tokenizer, clean_text
from newton.providers.onnx import RUN_OPTIONS

MODEL = DATA / "change_reader.onnx"
MAX_PIECES = 96  # word pieces of both statements together
CLS, SEP = 101, 102


class PairReader:
    """Reads pairs of statements. Loading takes 0.1 s, a pair 2 to 4 ms of one core.

    Each pair is read alone: the scales of the quantization are those of a batch, so in a batch the score of a pair
    would depend on the others.
    """

    def __init__(self, model: Path = MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._session = load_layers(model)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair (older, newer) the log odds that the newer statement replaces the older one.

        Of texts of more than 93 word pieces together, the longer one is truncated.
        """
        texts = [clean_text(text) for pair in pairs for text in pair]
        pieces = [one.ids for one in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        return [self._score(*_join(older, newer)) for older, newer in zip(pieces[::2], pieces[1::2], strict=True)]

    def _score(self, pieces: list[int], kinds: list[int]) -> float:
        ids, types = np.array([pieces]), np.array([kinds])
        inputs: dict[str, NDArray[Any]] = {
            "word_vectors": self._words.take_vectors(ids),
            "attention_mask": np.ones_like(ids),
            "token_type_ids": types,
        }
        return float(np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0]).item())


@cache
def load_reader() -> PairReader:
    """Return the reader, loaded once. Raises ProviderError if a file is damaged."""
    return PairReader()


def _join(older: list[int], newer: list[int]) -> tuple[list[int], list[int]]:
    """Return the word pieces of both texts with their separators, and for each whether it is of the newer text."""
    room = MAX_PIECES - 3
    if len(older) + len(newer) > room:
        older = older[: max(room // 2, room - len(newer))]
        newer = newer[: room - len(older)]
    return [CLS, *older, SEP, *newer, SEP], [0] * (len(older) + 2) + [1] * (len(newer) + 1)
