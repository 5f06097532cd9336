"""The encoder of questions that belongs to the local embedding model.

It is all-MiniLM-L6-v2, trained further by `scripts/fit-question-encoder` so that the vector of a question is near to
the stored vectors of the texts that answer it. The vectors of its words are those of the embedding model.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from newton.providers.embedding import Vector, normalize_rows
from newton.providers.local.base_weights import DATA, load_layers, load_word_table
from newton.providers.minilm import build_tokenizer, clean_text
from newton.providers.onnx import RUN_OPTIONS

MODEL = DATA / "question_encoder.onnx"


class QuestionEncoder:
    """Maps questions to unit vectors. Loading takes 0.2 s, a question 3 ms of one core.

    Each question is encoded alone, as its vector would depend on the others of a batch: the scales of the quantization
    are those of a batch.
    """

    def __init__(self, model: Path = MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._session = load_layers(model)

    def encode_questions(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each question, in order. Questions are truncated to 256 word pieces."""
        pieces = [one.ids for one in self._tokenizer.encode_batch([clean_text(text) for text in texts])]
        return [self._encode(ids) for ids in pieces]

    def _encode(self, pieces: list[int]) -> Vector:
        ids = np.array([pieces])
        inputs = {"word_vectors": self._words.take_vectors(ids), "attention_mask": np.ones_like(ids)}
        return normalize_rows(np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0]))[0]


@cache
def load_encoder() -> QuestionEncoder:
    """Return the encoder, loaded once. Raises ProviderError if a file is damaged."""
    return QuestionEncoder()
