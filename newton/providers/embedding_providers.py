"""Selection of the embedding model by the settings, or by the model with which memories were embedded.

The libraries of a model are imported when it is used.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from newton.errors import ProviderError
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


def create_embedder(settings: Settings) -> "Embedder | None":
    """Return the embedder that the settings select; None if they turn embeddings off. Blocks while the model loads."""
    match settings.embedding_provider:
        case "local":
            return _load_minilm(settings.embeddings_device)
        case "multilingual":
            return _load_multilingual()
        case "openai":
            return import_module("newton.providers.openai.embedding").OpenAIEmbedder(settings)
        case "none":
            return None


@cache
def _load_minilm(device: str) -> "Embedder":
    """Return the local embedder. The process has only one, because each takes 100 MiB."""
    return import_module("newton.providers.minilm").MiniLM(device)


@cache
def _load_multilingual() -> "Embedder":
    """Return the only multilingual embedder of the process. Raises ConfigError if it is not installed."""
    return import_module("newton.providers.multilingual_e5").MultilingualE5()


class MissingEmbedder:
    """Stands for an embedding model that is not configured but was used for the memories.

    Raises ProviderError on use.
    """

    def __init__(self, identity: str) -> None:
        self.name, self.identity, self.dimensions = identity, identity, 1

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        raise ProviderError(
            f"The memories were embedded with the model {self.identity}, which is not configured.",
            hint="Configure that model again, or run `newton reembed` to embed the memories with the configured model.",
        )


def embedder_for(identity: str | None, settings: Settings, configured: "Embedder | None") -> "Embedder | None":
    """Return the embedder for the model `identity`, with which the agent's memories were embedded.

    It may differ from the `configured` one. Return `configured` if `identity` is None or if embeddings are turned off.
    """
    if configured is None or identity is None or identity == configured.identity:
        return configured
    if identity == import_module("newton.providers.minilm").MiniLM.identity:
        return _load_minilm(settings.embeddings_device)
    if identity == import_module("newton.providers.multilingual_e5").read_identity():
        return _load_multilingual()
    model, _, dimensions = identity.rpartition("/")
    if dimensions.isdecimal() and (settings.openai_api_key or settings.openai_base_url):
        other = {"embedding_model": model, "embedding_dimensions": int(dimensions)}
        return import_module("newton.providers.openai.embedding").OpenAIEmbedder(settings.model_copy(update=other))
    return MissingEmbedder(identity)
