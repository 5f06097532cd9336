"""Base class of the chat models of all protocols: upstream (server), HTTP client, and name of the model."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Self

import openai
from pydantic import BaseModel

from newton.errors import ProviderError
from newton.providers import model_catalog
from newton.providers.chat import CallRestart, ChatMessage, ChatReply, ReplyPiece, RequestOptions
from newton.providers.context_windows import ASSUMED_WINDOW, ContextWindow, LearntWindows, find_published_window
from newton.providers.model_endpoint import ANSWERS, ModelEndpoint, make_client
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import ModelUpstream


class UpstreamChat(ABC):
    """Base class of a chat model at an upstream (model server); a subclass implements the protocol of the server.

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
        windows: LearntWindows | None = None,
    ) -> None:
        self._upstream, self._model, self._purpose = upstream, model or upstream.model, purpose
        self._client, self._windows = client or make_client(upstream), windows or LearntWindows()

    @property
    def upstream(self) -> ModelUpstream:
        """Return the model server in the settings that has the model."""
        return self._upstream

    @property
    def name(self) -> str:
        """Return the name of the model; a description of the server while the name is not known."""
        known = self._known_name
        return self._upstream.label(known) if known else f"the model of {self._upstream.address}"

    @property
    def _known_name(self) -> str | None:
        return self._model or model_catalog.known_only_model(self._upstream)

    def with_model(self, name: str | None) -> Self:
        """Return a chat model for the model `name` of the same server; for None, the model in the settings."""
        return self._copy(name, self._purpose)

    def isolate(self, purpose: str) -> Self:
        """Return the same model with a circuit breaker of its own: its failures pause only calls for this purpose."""
        return self._copy(self._model, purpose)

    def _copy(self, model: str | None, purpose: str) -> Self:
        return type(self)(self._upstream, model=model, client=self._client, purpose=purpose, windows=self._windows)

    @property
    def known_window(self) -> ContextWindow:
        """Return the context window (maximum tokens), as far as it is known without a request."""
        if (name := self._known_name) is None:
            return ASSUMED_WINDOW
        key = self._key(name)
        return self._windows.apply(key, self._find_stated_window(name, model_catalog.find_reported_window(key)))

    async def find_window(self) -> ContextWindow:
        """Return the context window; ask the server first if it may know it. A server that fails is ignored.

        A window that the server has reported before is returned at once, and asked for again in the background.
        """
        with suppress(ProviderError):
            key = self._key(self._known_name or await self.resolve_name())
            is_published = self._upstream.provider == "openai" and self._upstream.is_provider_itself
            if not (is_published or self._upstream.window_tokens):
                await model_catalog.ask_window(self._upstream, self._client, key)
        return self.known_window

    async def learn_window(self, tokens: int, *, is_guess: bool) -> None:
        """Keep the context window that a refused prompt has shown, a guess only in this process.

        Nothing is kept while the model's name is unknown.
        """
        if (name := self._known_name) is None:
            return
        key = self._key(name)
        stated = self._find_stated_window(name, model_catalog.find_reported_window(key))
        await asyncio.to_thread(self._windows.learn, key, tokens, stated, is_guess=is_guess)

    def _key(self, model: str) -> EndpointKey:
        return EndpointKey(self._upstream.name, self._upstream.address, model)

    def _find_stated_window(self, model: str, reported: int | None) -> ContextWindow:
        """Return the window that the settings state, else that of the server, else that of the provider's table."""
        if self._upstream.window_tokens:
            return ContextWindow(self._upstream.window_tokens, "setting")
        if reported:
            return ContextWindow(reported, "server")
        return find_published_window(self._upstream.provider, model) or ASSUMED_WINDOW

    async def list_models(self) -> Sequence[str]:
        """Return the names of the models that the server offers.

        Raises ProviderError if the server does not list them.
        """
        return await model_catalog.list_models(self._upstream, self._client)

    async def resolve_name(self) -> str:
        """Return the name of the model. Raises ProviderError if none is configured and the server offers several."""
        return self._model or await model_catalog.find_only_model(self._upstream, self._client)

    @abstractmethod
    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """Stream the pieces of a reply, then a ChatReply with all of it.

        With a `schema`, JSON that matches it is asked for.
        """

    @abstractmethod
    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncGenerator[ReplyPiece | CallRestart | ChatReply]:
        """Stream the pieces of a reply that may have tool calls, then a ChatReply, as `ToolModel.answer` describes."""

    async def _open_endpoint(self) -> ModelEndpoint:
        name = await self.resolve_name()
        return ModelEndpoint(client=self._client, model=name, upstream=self._upstream, purpose=self._purpose)
