"""Factories of the configured models. They import the modules of the model clients only when they are called."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from newton.agent.llm.structured import StructuredLLM
from newton.agent.scope import AgentScope
from newton.cognition.sources.web import WEB_SECONDS, WebSource
from newton.db.pool import Database
from newton.memory.memory import TokenCounter
from newton.providers.chat import IsolatableModel
from newton.providers.embedding_providers import create_embedder
from newton.runtime.model_directory import ModelDirectory
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder
    from newton.providers.structured_output import StructuredModel


def build_structured_llm(
    models: ModelDirectory, scope: AgentScope, *, model: str | None, tokens_per_day: int, is_for_summaries: bool = False
) -> StructuredLLM | None:
    """Return a client for model calls with structured output; None if no chat model is configured.

    `model` names the chat model; None is the configured default. `tokens_per_day` limits the calls. They have a circuit
    breaker apart from that of the answers, and another one if the client `is_for_summaries` of conversations.
    """
    chat = models.get(model)
    if isinstance(chat, IsolatableModel):
        chat = chat.isolate("summaries" if is_for_summaries else "maintenance")
    if chat is None:
        return None
    return StructuredLLM(
        scope=scope,
        model=cast("StructuredModel", chat),
        tokens_per_day=tokens_per_day,
        is_for_summaries=is_for_summaries,
    )


def build_web_source(settings: Settings, *, db: Database, count_tokens: TokenCounter) -> WebSource | None:
    """Return the web search as a source of contexts; None if none is configured."""
    if settings.search_url is None:
        return None
    web_search = import_module("newton.providers.web_search").WebSearch
    search = web_search(settings.search_url, seconds=WEB_SECONDS)
    return WebSource(search=search, db=db, count_tokens=count_tokens)


def load_models(settings: Settings) -> "tuple[Embedder | None, TokenCounter]":
    """Return the configured embedder (None if embeddings are off) and the token counter. Blocks while they load."""
    tokens = import_module("newton.providers.token_counter")
    tokens.preload()
    return create_embedder(settings), tokens.count
