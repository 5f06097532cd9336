"""Build the configured models. Their modules are imported on first use."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from newton.agent.llm.structured import StructuredLLM
from newton.agent.scope import AgentScope
from newton.cognition.sources.web import WebSource
from newton.db.pool import Database
from newton.errors import ProviderError
from newton.memory.memory import TokenCounter
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector
    from newton.providers.openai_chat import OpenAIChat


def build_chat_model(settings: Settings) -> "OpenAIChat | None":
    """Return the chat model, or None when neither a key nor an endpoint is set."""
    if settings.openai_api_key is None and settings.openai_base_url is None:
        return None
    return import_module("newton.providers.openai_chat").OpenAIChat(settings)


def build_structured_llm(settings: Settings, scope: AgentScope, *, model: str | None = None) -> StructuredLLM | None:
    """Return the structured LLM, or None when no chat model is configured. `model` overrides its name."""
    chat = build_chat_model(settings.model_copy(update={"openai_model": model or settings.openai_model}))
    return chat and StructuredLLM(scope=scope, model=chat, tokens_per_day=settings.llm_tokens_per_day)


def build_web_source(settings: Settings, *, db: Database, count_tokens: TokenCounter) -> WebSource | None:
    if settings.search_url is None:
        return None
    web_search = import_module("newton.providers.web_search").WebSearch
    search = web_search(settings.search_url, seconds=settings.source_timeout_seconds)
    return WebSource(search=search, db=db, count_tokens=count_tokens)


def load_models(settings: Settings) -> "tuple[Embedder | None, TokenCounter]":
    """Return the configured embedder and the token counter. Blocks while they load."""
    tokens = import_module("newton.providers.token_counter")
    tokens.preload()
    match settings.embedding_provider:
        case "local":
            return _load_minilm(settings.embeddings_device), tokens.count
        case "openai":
            return import_module("newton.providers.openai_embedding").OpenAIEmbedder(settings), tokens.count
        case "none":
            return None, tokens.count


@cache
def _load_minilm(device: str) -> "Embedder":
    """Return the embedder shared by the process; each instance takes 100 MiB."""
    return import_module("newton.providers.minilm").MiniLM(device)


class MissingEmbedder:
    """Placeholder for an active embedding model that is not configured. Raises ProviderError on use."""

    def __init__(self, identity: str) -> None:
        self.identity, self.dimensions = identity, 1

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        raise ProviderError(
            f"The active embedding model {self.identity} is not configured.",
            hint="Run `newton reembed` to switch to the configured model.",
        )


def embedder_for(identity: str | None, settings: Settings, configured: "Embedder | None") -> "Embedder | None":
    """Return the embedder of the active model `identity`, which may differ from the configured one."""
    if configured is None or identity in (None, configured.identity):
        return configured
    if identity == import_module("newton.providers.minilm").MiniLM.identity:
        return _load_minilm(settings.embeddings_device)
    model, _, dimensions = identity.rpartition("/")
    if dimensions.isdecimal() and (settings.openai_api_key or settings.openai_base_url):
        other = {"embedding_model": model, "embedding_dimensions": int(dimensions)}
        return import_module("newton.providers.openai_embedding").OpenAIEmbedder(settings.model_copy(update=other))
    return MissingEmbedder(identity)
