"""The vector of an input, for the sources that search beside the memory search."""

import asyncio
from typing import TYPE_CHECKING

from newton.errors import ProviderError

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


async def embed_input(embedder: "Embedder | None", text: str, *, timeout_seconds: float) -> "Vector | None":
    """Return the vector of an input; None without an embedder, or if it fails or does not answer in time.

    The failure is not reported here: the memory search embeds the same input and reports it.
    """
    if embedder is None:
        return None
    try:
        async with asyncio.timeout(timeout_seconds):
            return (await embedder.embed([text]))[0]
    except (ProviderError, TimeoutError):
        return None
