"""The vector of an input, for the sources that search beside the memory search."""

from typing import TYPE_CHECKING

from newton.deadline import RequestDeadline
from newton.errors import ProviderError

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


async def embed_input(embedder: "Embedder | None", text: str, deadline: RequestDeadline) -> "Vector | None":
    """Return the vector of an input; None without an embedder, or if it fails or does not answer until the deadline.

    The failure is not reported here: the memory search embeds the same input and reports it.
    """
    if embedder is None:
        return None
    try:
        async with deadline.timeout():
            return (await embedder.embed([text]))[0]
    except (ProviderError, TimeoutError):
        return None
