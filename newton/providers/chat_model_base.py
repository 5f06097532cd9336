"""Base class of the chat models of all protocols: upstream (server), HTTP client, and name of the model."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from typing import Self

import openai
from pydantic import BaseModel

from newton.providers import model_catalog
from newton.providers.chat import CallRestart, ChatMessage, ChatReply, ReplyPiece, RequestOptions
from newton.providers.model_endpoint import ANSWERS, ModelEndpoint, make_client
from newton.providers.upstreams import ModelUpstream


class UpstreamChat(ABC):
    """Base class of a chat model at an upstream; a subclass implements the protocol of the server.

    Without a model name, the default of the provider is used, or the only model of another server; see
    `find_only_model`.
    """

    def __init__(
        self,
        upstream: ModelUpstream,
        *,
        model: str | None = None,
        client: openai.AsyncOpenAI | None = None,
        purpose: str = ANSWERS,
    ) -> None:
        self._upstream, self._model, self._purpose = upstream, model or upstream.model, purpose
        self._client = client or make_client(upstream)

    @property
    def upstream(self) -> ModelUpstream:
        """Return the upstream (server) of the model."""
        return self._upstream

    @property
    def name(self) -> str:
        """Return the name of the model; a description while the name is not known."""
        known = self._model or model_catalog.known_only_model(self._upstream)
        return self._upstream.label(known) if known else f"the model of {self._upstream.address}"

    def with_model(self, name: str | None) -> Self:
        """Return a chat model for the model `name` of the same server; for None, the one of the settings."""
        return type(self)(self._upstream, model=name, client=self._client, purpose=self._purpose)

    def isolate(self, purpose: str) -> Self:
        """Return the same model with a circuit breaker of its own for this purpose."""
        return type(self)(self._upstream, model=self._model, client=self._client, purpose=purpose)

    async def list_models(self) -> Sequence[str]:
        """Return the names of the models that the server offers. Raises ProviderError if it cannot be asked."""
        return await model_catalog.list_models(self._upstream, self._client)

    async def resolve_name(self) -> str:
        """Return the name of the model. Raises ProviderError if none is configured and the server offers several."""
        return self._model or await model_catalog.find_only_model(self._upstream, self._client)

    @abstractmethod
    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """Stream a reply, as `StructuredModel.stream`."""

    @abstractmethod
    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        """Stream a reply that may contain tool calls, as `ToolModel.answer`."""

    async def _open_endpoint(self) -> ModelEndpoint:
        name = await self.resolve_name()
        return ModelEndpoint(client=self._client, model=name, upstream=self._upstream, purpose=self._purpose)
