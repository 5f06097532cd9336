"""The upstreams: the servers of models that the settings name, each with its address, key and model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from newton.settings import Settings, UpstreamSettings

Provider = Literal["openai", "anthropic"]

BASE_URLS: dict[Provider, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
DEFAULT_MODELS: dict[Provider, str] = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-5-5"}  # of both themselves
MAX_LISTED = 10  # names of models in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUpstream:
    """A server of models. `is_named` is whether it is one of `[models]` and not of the variables of its provider.

    `model` is None if the server decides; `seconds` limits a whole call. `needs_key` is whether the name of a key is
    configured. `key_setting` and the other settings are what an error tells the operator to correct.
    """

    name: str
    provider: Provider
    address: str
    model: str | None
    seconds: float
    key: str | None = field(default=None, repr=False)
    is_named: bool = False
    needs_key: bool = False
    key_setting: str
    address_setting: str
    model_setting: str

    @property
    def is_provider_itself(self) -> bool:
        """Return whether the server is the one of the company that defines the protocol."""
        return self.address == BASE_URLS[self.provider]

    @property
    def has_missing_key(self) -> bool:
        """Return whether it is one of `[models]` that needs a key and has none."""
        return self.is_named and self.key is None and (self.needs_key or self.is_provider_itself)

    def label(self, model: str) -> str:
        """Return the name of one of its models: in usage records, and as callers select it."""
        return f"{self.name}/{model}" if self.is_named else model


def list_upstreams(settings: Settings) -> dict[str, ModelUpstream]:
    """Return the configured upstreams by name: those of the variables of both providers, then those of `[models]`.

    An upstream of `[models]` with the name of a provider takes the place of that provider's variables.
    """
    found: dict[str, ModelUpstream] = {}
    for provider in BASE_URLS:
        configured = _read_provider_settings(settings, provider)
        if configured.api_key is not None or configured.base_url is not None:
            found[provider] = build_provider_upstream(provider, settings)
    return found | {name: _build_named_upstream(name, one, settings) for name, one in settings.models.items()}


def build_provider_upstream(provider: Provider, settings: Settings) -> ModelUpstream:
    """Return the upstream of the variables of a provider, such as `OPENAI_…`, whether they are set or not."""
    configured, prefix = _read_provider_settings(settings, provider), provider.upper()
    return ModelUpstream(
        name=provider,
        provider=provider,
        address=_to_address(configured.base_url, provider),
        model=configured.model,
        key=configured.api_key.get_secret_value() if configured.api_key else None,
        seconds=settings.llm_timeout,
        key_setting=f"{prefix}_API_KEY",
        address_setting=f"{prefix}_BASE_URL",
        model_setting=f"{prefix}_MODEL",
    )


def _read_provider_settings(settings: Settings, provider: Provider) -> UpstreamSettings:
    if provider == "anthropic":
        key, base_url, model = settings.anthropic_api_key, settings.anthropic_base_url, settings.anthropic_model
    else:
        key, base_url, model = settings.openai_api_key, settings.openai_base_url, settings.openai_model
    return UpstreamSettings(provider=provider, base_url=base_url, model=model, api_key=key)


def _build_named_upstream(name: str, configured: UpstreamSettings, settings: Settings) -> ModelUpstream:
    """Return an upstream of `[models]`.

    One without an address is the provider itself and may use the provider's key; a key is never sent to another server.
    """
    key, key_setting = configured.api_key, configured.api_key_env or f"api_key_env of [models.{name}]"
    if key is None and configured.api_key_env is None and configured.base_url is None:
        key = _read_provider_settings(settings, configured.provider).api_key
    return ModelUpstream(
        name=name,
        provider=configured.provider,
        address=_to_address(configured.base_url, configured.provider),
        model=configured.model,
        key=key.get_secret_value() if key else None,
        seconds=settings.llm_timeout,
        is_named=True,
        needs_key=configured.api_key_env is not None,
        key_setting=key_setting,
        address_setting=f"base_url of [models.{name}]",
        model_setting=f"model of [models.{name}]",
    )


def format_model_names(names: Sequence[str]) -> str:
    """Return the names of models for an error, at most MAX_LISTED."""
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")


def _to_address(base_url: str | None, provider: Provider) -> str:
    """Return the address of a server. That of Anthropic's protocol is usually configured without its version."""
    address = (base_url or BASE_URLS[provider]).rstrip("/")
    return f"{address}/v1" if provider == "anthropic" and not address.endswith("/v1") else address
