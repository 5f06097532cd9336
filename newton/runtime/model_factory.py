"""Build the configured models. Their modules are imported on first use."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from newton.agent.llm.structured import StructuredLLM
from newton.agent.loop.completion import NO_MODEL_MESSAGE
from newton.agent.scope import AgentScope
from newton.cognition.sources.web import WebSource
from newton.db.pool import Database
from newton.errors import ModelNotFoundError, ProviderError
from newton.memory.memory import TokenCounter
from newton.providers.chat import ChatModel, ModelSelector
from newton.providers.embedding_providers import create_embedder
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder
    from newton.providers.openai_chat import OpenAIChat

MAX_LISTED_MODELS = 10  # in the error for an unknown model


def build_chat_model(settings: Settings) -> "OpenAIChat | None":
    """Return the agent's chat model, or None when neither a key nor an endpoint is set."""
    if settings.openai_api_key is None and settings.openai_base_url is None:
        return None
    model = settings.agent_models.get(settings.agent)
    return import_module("newton.providers.openai_chat").OpenAIChat(settings, model=model)


async def select_model(default: "ChatModel | None", name: str) -> "ChatModel":
    """Return the named model of the server of the default model.

    Raises ModelNotFoundError with the names that the server offers. A server that lists none is asked for any name.
    """
    if default is None:
        raise ModelNotFoundError(f"There is no model {name!r}.", hint=f"{NO_MODEL_MESSAGE} Use the model `newton`.")
    if name == default.name:
        return default
    if not isinstance(default, ModelSelector):
        raise ModelNotFoundError(f"There is no model {name!r}.", hint=f"There is: {default.name}.")
    try:
        names = await default.list_models()
    except ProviderError:
        return default.with_model(name)
    ensure_offered(name, names)
    return default.with_model(name)


def ensure_offered(name: str, names: Sequence[str]) -> None:
    """Raise ModelNotFoundError with the names that a server offers, unless the named model is among them."""
    if _without_tag(name) not in map(_without_tag, names):
        listed = ", ".join(names[:MAX_LISTED_MODELS]) + (", …" if len(names) > MAX_LISTED_MODELS else "")
        raise ModelNotFoundError(f"There is no model {name!r}.", hint=f"There are: {listed}.")


def _without_tag(name: str) -> str:
    """Return a model's name without the tag that some servers add or imply.

    >>> _without_tag("llama3.2:latest")
    'llama3.2'
    """
    return name.partition(":")[0]


def build_structured_llm(settings: Settings, scope: AgentScope, *, model: str | None = None) -> StructuredLLM | None:
    """Return the structured LLM, or None when no chat model is configured. `model` overrides its name."""
    chat = build_chat_model(settings)
    chat = chat.with_model(model) if chat and model else chat
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
    return create_embedder(settings), tokens.count
