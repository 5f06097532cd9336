"""Models without a model: deterministic stand-ins that need no files, for tests and for trying things out."""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence

import numpy as np

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage, Reply
from newton.providers.embedding import Vector, unit

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Texts that share words are alike; nothing is known of meaning."""

    identity = "hashed-words/1"
    dimensions = 256

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return unit(np.stack([self._counts(text) for text in texts])) if texts else []

    def _counts(self, text: str) -> Vector:
        row = np.zeros(self.dimensions, dtype=np.float32)
        for word in _WORD.findall(text.lower()):
            row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest()) % self.dimensions] += 1
        return row


class BrokenEmbedder:
    """An embedding endpoint that is down. It claims to be the model that `identity` names."""

    def __init__(self, identity: str = HashEmbedder.identity, dimensions: int = HashEmbedder.dimensions) -> None:
        self.identity, self.dimensions = identity, dimensions

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ProviderError("The embedding endpoint does not answer.", hint="Start it again.")


class ScriptedChat:
    """Says what it was told to say, a word at a time, and remembers what it heard."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.heard: list[Sequence[ChatMessage]] = []

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
        self.heard.append(messages)
        if not self._lines:
            raise ProviderError("The scripted model has nothing left to say.", hint="Give it more lines.")
        text = self._lines.pop(0)
        for piece in re.findall(r"\S+\s*", text)[:max_tokens]:
            yield piece
        heard = sum(len(message.text.split()) for message in messages)
        yield Reply(text=text, model="scripted", input_tokens=heard, output_tokens=len(text.split()), estimated=True)
