"""The local reader of inputs, offline and on the CPU: which frame an English input asks for.

It is a transformer whose layers stand in part in the file of the embedding model (`newton.providers.minilm`).
`scripts/fit-frame-reader` trains it on the examples of the frames and on inputs of people who have not seen the code
(`tests/data/frame_inputs`).
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from newton.providers.minilm import DATA, build_tokenizer, clean_text, load_layers, load_word_table
from newton.providers.onnx import RUN_OPTIONS

ShippedFrame = Literal["conversation", "creative", "debug", "decision", "planning", "question", "reflection", "task"]
FRAMES: tuple[ShippedFrame, ...] = get_args(ShippedFrame)
FRAME_MODEL = DATA / "frame_reader.onnx"


class FrameReading(NamedTuple):
    """The log probability that an input asks for each frame, and what each word adds to the log odds of FRAMES."""

    rates: Mapping[str, float]
    words: Mapping[str, NDArray[np.float64]]


class FrameReader:
    """A local model that reads inputs. Loading takes 0.1 s, an input 3 ms of one core."""

    def __init__(self, model: Path = FRAME_MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._session = load_layers(model)

    def read(self, text: str) -> FrameReading:
        """Return the reading of an input; of a long one, of its beginning."""
        cleaned = clean_text(text)
        (encoded,) = self._tokenizer.encode_batch([cleaned])
        ids = np.array([encoded.ids])
        inputs = {"word_vectors": self._words.take_vectors(ids), "attention_mask": np.ones_like(ids)}
        parts = np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0])[0].astype(np.float64) / ids.shape[1]
        odds = parts.sum(axis=0) - parts.sum(axis=0).max()
        rates: dict[str, float] = dict(zip(FRAMES, (odds - np.log(np.exp(odds).sum())).tolist(), strict=True))
        words = dict[str, NDArray[np.float64]]()
        for (start, end), part in zip(encoded.offsets, parts, strict=True):
            word = _find_word(cleaned, start, end)
            words[word] = words.get(word, np.zeros(len(FRAMES))) + part
        words.pop("", None)
        return FrameReading(rates, words)


def _find_word(text: str, start: int, end: int) -> str:
    """Return the word of which a word piece is a part, in lower case; "" for one of no word."""
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end].lower() if text[start:end].isalnum() else ""


@cache
def load_frame_reader() -> FrameReader:
    """Return the reader of inputs, loaded once. Raises ProviderError if a file is damaged."""
    return FrameReader()


@lru_cache(maxsize=256)
def read_frames(text: str) -> FrameReading:
    """Return which frame an input asks for, as the reader reads it."""
    return load_frame_reader().read(text)
