"""The chat models of the configured model servers ("upstreams"), found by name."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pydantic import BaseModel

from newton.agent.loop.completion import NO_MODEL_MESSAGE, QUOTE_SETTING
from newton.content.yaml_files import did_you_mean
from newton.errors import ModelNotFoundError, ProviderError
from newton.providers.chat import ChatMessage, ChatModel, ChatReply
from newton.providers.context_windows import LearntWindows
from newton.providers.upstreams import ModelUpstream, format_model_names, list_upstreams
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.providers.chat_model_base import UpstreamChat


LEARNT_WINDOWS = "model_windows.json"  # in the data folder


class UnusableModel:
    """A ChatModel for an incomplete configuration: every call fails with an error that names the missing setting."""

    def __init__(self, name: str, what: str, hint: str) -> None:
        self.name, self._what, self._hint = name, what, hint

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """Raise ProviderError with the setting that the operator must add."""
        raise ProviderError(self._what, hint=self._hint)
        yield  # an asynchronous generator


class ModelDirectory:
    """The chat models of a process, by name. Each model server ("upstream") gets one connection pool on first use.

    `default`, if given, is used in place of the configured default model.
    """

    def __init__(self, settings: Settings, default: ChatModel | None = None) -> None:
        self._upstreams, self._default = list_upstreams(settings), default
        self._default_name, self._windows = settings.default_model, LearntWindows(settings.home / LEARNT_WINDOWS)
        self._built: dict[str, UpstreamChat] = {}

    def get(self, name: str | None = None) -> ChatModel | None:
        """Return the named model, without a request to its server. For None, return the default model.

        Return None if no model is configured. `name` is the name of a model server, SERVER/MODEL, or the name of a
        model of the main server.
        """
        if name is None and self._default is not None:
            return self._default
        name = name or self._default_name
        if not self._upstreams:
            return None
        if name is None:
            main = self._find_main_upstream()
            return self._get_upstream_model(main) if main else self._undecided_model()
        first, _, rest = name.partition("/")
        if name in self._upstreams or (rest and first in self._upstreams):
            return self._get_upstream_model(self._upstreams[first], rest or None)
        return self._get_upstream_model(self._find_main_upstream() or next(iter(self._upstreams.values())), name)

    async def select(self, default: ChatModel | None, name: str) -> ChatModel:
        """Return the model with this name, after asking the configured model servers for their models.

        `default` is the agent's default model. A server that does not list its models is assumed to have any model.
        Raises ModelNotFoundError, with the known names, for an unknown one.
        """
        if default is not None and name == default.name:
            return default
        servers = self._list_servers(default)
        offers = [(server, await _list_offers(server)) for server in servers]
        found = next((server for server, names in offers if names and name in names), None)
        if found is None and self._is_of_upstream(name):
            return await self._select_at_upstream(name)
        found = found or next((server for server, names in offers if names and is_offered(name, names)), None)
        if found is None and offers and offers[0][1] is None:
            found = offers[0][0]
        if found:
            return found.with_model(name.removeprefix(f"{found.upstream.name}/") if found.upstream.is_named else name)
        raise self._unknown_model_error(name, default, [one for _, names in offers for one in names or ()])

    async def list_names(self, default: ChatModel | None) -> list[str]:
        """Return the names of the model servers in the setting `[models]`, and of the models that the other servers
        list.

        Raises ProviderError if there is only one server and it does not list its models.
        """
        servers = self._list_servers(default)
        if len(servers) == 1 and not self._named:
            return [*await servers[0].list_models()]
        offers = [await _list_offers(server) or () for server in servers]
        return list(dict.fromkeys([*self._named, *(name for names in offers for name in names)]))

    @property
    def _named(self) -> list[str]:
        return [one.name for one in self._upstreams.values() if one.is_named]

    def _find_main_upstream(self) -> ModelUpstream | None:
        """Return the model server of the default model; None if there are several servers and no default."""
        default = self._default_name and self._upstreams.get(self._default_name.partition("/")[0])
        providers = [one for one in self._upstreams.values() if not one.is_named]
        if default or providers:
            return default or providers[0]
        return next(iter(self._upstreams.values())) if len(self._upstreams) == 1 else None

    def _list_servers(self, default: ChatModel | None) -> "list[UpstreamChat]":
        """Return clients of the servers to ask for their models: that of the default model, and each provider.

        Servers without a required key are left out.
        """
        own: ModelUpstream | None = getattr(default, "upstream", None)
        main = own or self._find_main_upstream()
        providers = [one for one in self._upstreams.values() if not one.is_named]
        asked = dict.fromkeys(one for one in (main, *providers) if one)
        return [self._build(one) for one in asked if not one.has_missing_key]

    def _is_of_upstream(self, name: str) -> bool:
        return name.partition("/")[0] in self._upstreams

    async def _select_at_upstream(self, name: str) -> ChatModel:
        first, _, rest = name.partition("/")
        model = self._get_upstream_model(self._upstreams[first], rest or None)
        if rest and not isinstance(model, UnusableModel):
            names = await _list_offers(self._build(self._upstreams[first]))
            if names is not None:
                ensure_offered(rest, [one.removeprefix(f"{first}/") for one in names])
        return model

    def _get_upstream_model(self, upstream: ModelUpstream, model: str | None = None) -> ChatModel:
        if upstream.has_missing_key:
            what = f"The model server {upstream.name} has no API key."
            return UnusableModel(upstream.label(model or upstream.model or "?"), what, f"Set {upstream.key_setting}.")
        built = self._build(upstream)
        return built.with_model(model) if model else built

    def _build(self, upstream: ModelUpstream) -> "UpstreamChat":
        if upstream.name not in self._built:
            module, name = {
                "openai": ("newton.providers.openai.chat", "OpenAIChat"),
                "anthropic": ("newton.providers.anthropic.chat", "AnthropicChat"),
            }[upstream.provider]
            self._built[upstream.name] = getattr(import_module(module), name)(upstream, windows=self._windows)
        return self._built[upstream.name]

    def _undecided_model(self) -> UnusableModel:
        what = f"Several models are configured and none is the default: {', '.join(self._upstreams)}."
        return UnusableModel("no model", what, "Set default_model in newton.toml to one of them, or give --model.")

    def _unknown_model_error(self, name: str, default: ChatModel | None, offered: Sequence[str]) -> ModelNotFoundError:
        if default is None:
            hint = f"{NO_MODEL_MESSAGE} Use the model `newton`."
            return ModelNotFoundError(f"There is no model {name!r}.", hint=hint)
        names = list(dict.fromkeys([*self._named, *offered])) or [default.name]
        return _not_offered(name, names)


def describe_replies_without_model(settings: Settings) -> str:
    """Return what callers get in place of a reply while no chat model is configured, as a clause of a sentence."""
    if settings.quote_without_model:
        return "answers quote memory"
    quoting = "`newton ask` and `newton chat` quote memory"
    return f"{quoting}, and clients of OpenAI's API get an error unless you set {QUOTE_SETTING}"


async def _list_offers(server: "UpstreamChat") -> list[str] | None:
    """Return the names of a server's models, as callers select them; None if the server does not list its models."""
    try:
        return [server.upstream.label(name) for name in await server.list_models()]
    except ProviderError:
        return None


def ensure_offered(name: str, names: Sequence[str]) -> None:
    """Raise ModelNotFoundError, which lists `names`, unless the model is one of them.

    A name such as SERVER/MODEL is accepted if `names` contains SERVER, because that server checks the rest.
    """
    if name.partition("/")[0] not in names and not is_offered(name, names):
        raise _not_offered(name, names)


def _not_offered(name: str, names: Sequence[str]) -> ModelNotFoundError:
    hint = f"{did_you_mean(name, names)} The models are: {format_model_names(names)}.".strip()
    return ModelNotFoundError(f"There is no model {name!r}.", hint=hint)


def is_offered(name: str, names: Iterable[str]) -> bool:
    """Return whether a model is one of `names`; tags such as `:latest` are ignored."""
    return _without_tag(name) in map(_without_tag, names)


def _without_tag(name: str) -> str:
    """Return the name of a model without its tag, which some servers add or imply.

    >>> _without_tag("llama3.2:latest")
    'llama3.2'
    """
    return name.partition(":")[0]
