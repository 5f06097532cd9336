"""Deterministic models that need no files, for tests and demonstrations."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import numpy as np
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.embedding import Vector, normalize_rows
from newton.text.stems import WORD

_PIECE = re.compile(r"\S+\s*|\s+")
_PAIR_WEIGHT = 0.5  # relative to a word


class HashEmbedder:
    """An embedder that hashes words and word pairs to dimensions. A text without words has a zero vector."""

    name = "hashed-words"
    identity = "hashed-words/2"
    dimensions = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return normalize_rows(np.stack([self._counts(text) for text in texts])) if texts else []

    def _counts(self, text: str) -> Vector:
        row = np.zeros(self.dimensions, dtype=np.float32)
        words = WORD.findall(text.lower())
        pairs = [" ".join(pair) for pair in pairwise(words)]
        for gram, weight in (*((word, 1.0) for word in words), *((pair, _PAIR_WEIGHT) for pair in pairs)):
            digest = hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=4).digest()
            row[int.from_bytes(digest) % self.dimensions] += weight
        return row


class BrokenEmbedder:
    """An embedder whose every call raises ProviderError."""

    def __init__(self, identity: str = HashEmbedder.identity, dimensions: int = HashEmbedder.dimensions) -> None:
        self.name, self.identity, self.dimensions = identity, identity, dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ProviderError("The embedding endpoint does not answer.", hint="Start the embedding endpoint again.")


class ScriptedChat:
    """A chat model that replies with the next of its texts, and records the messages it gets. A word is one token."""

    name = "scripted"

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.received: list[Sequence[ChatMessage]] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """Yield the words of the next text, then the ChatReply."""
        self.received.append(messages)
        if not self._lines:
            raise ProviderError(
                "The scripted model has no replies left.", hint="Add replies to the script of the model."
            )
        words = _PIECE.findall(self._lines.pop(0))
        pieces = words[:max_tokens]
        for piece in pieces:
            yield piece
        text = "".join(pieces)
        yield ChatReply(
            text=text,
            model=self.name,
            input_tokens=sum(len(message.text.split()) for message in messages),
            output_tokens=len(text.split()),
            estimated=True,
            finish="stop" if pieces == words else "length",
        )
