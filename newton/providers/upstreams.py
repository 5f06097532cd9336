"""Upstreams: the model servers in the settings, each with address, API key and model, and its circuit breaker."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from newton.setting_types import UpstreamSettings
from newton.settings import Settings

FAILURE_THRESHOLD = 5  # consecutive failures that open the breaker of an endpoint
COOLDOWN_SECONDS = 15.0  # seconds between probe calls while the breaker of an endpoint is open
MAX_RETRY_BUDGET, RETRY_BUDGET_PER_CALL = 3.0, 0.1  # the initial retry budget, and its increase with each call


@dataclass(slots=True)
class CircuitBreaker:
    """Pauses calls of a failing server: after `failure_threshold` failures in a row, it allows one per cooldown.

    In its methods, `now` is a time in seconds; all calls must use the same clock. `retry_budget` is the number of
    retries left; each call adds a fraction. `last_failure` is a sentence about the latest failure; empty if there is
    none.
    """

    failure_threshold: int = FAILURE_THRESHOLD
    cooldown_seconds: float = COOLDOWN_SECONDS
    failures: int = 0
    retry_budget: float = MAX_RETRY_BUDGET
    last_failure: str = ""
    _next_probe: float = 0.0

    def allow_call(self, now: float) -> bool:
        """Return True if a call may be made. After too many failures, this is one call per cooldown."""
        if self.failures >= self.failure_threshold:
            if now < self._next_probe:
                return False
            self._next_probe = now + self.cooldown_seconds
        self.retry_budget = min(self.retry_budget + RETRY_BUDGET_PER_CALL, MAX_RETRY_BUDGET)
        return True

    @property
    def has_retry(self) -> bool:
        """Return True if a failed call may be retried now: calls are not paused, and retry budget is left."""
        return self.failures < self.failure_threshold and self.retry_budget >= 1

    def allow_retry(self) -> bool:
        """Return True if a failed call may be retried, and reduce the retry budget.

        Return False while calls are paused.
        """
        if not self.has_retry:
            return False
        self.retry_budget -= 1
        return True

    def record_result(self, now: float, *, failed: bool, failure: str = "") -> None:
        """Record whether an attempt failed, and with which `failure`.

        Any response of the server counts as success, even a refusal.
        """
        if not failed:
            self.failures = 0
            return
        self.failures += 1
        self.last_failure = failure
        if self.failures == self.failure_threshold:
            self._next_probe = now + self.cooldown_seconds


@functools.cache
def get_breaker(endpoint: tuple[str, str, str], purpose: str) -> CircuitBreaker:
    """Return the circuit breaker for calls of an endpoint (upstream, address, model) for one purpose.

    All agents of the process share it.
    """
    return CircuitBreaker()


Provider = Literal["openai", "anthropic"]

BASE_URLS: dict[Provider, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
DEFAULT_MODELS: dict[Provider, str] = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-5-5"}  # of both themselves
MAX_LISTED = 10  # names of models in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUpstream:
    """A model server in the settings.

    `is_named` means that it is a table of `[models]`, not given by variables such as `OPENAI_BASE_URL`. `model` is None
    if the server decides. `seconds` limits the time of a call, `start_seconds` that until its reply begins.
    `window_tokens` is the context window that the settings state. `needs_key` means that a variable for its key is
    configured. `key_setting`, `address_setting` and `model_setting` are the names of settings in error messages.
    """

    name: str
    provider: Provider
    address: str
    model: str | None
    seconds: float
    start_seconds: float
    key: str | None = field(default=None, repr=False)
    is_named: bool = False
    window_tokens: int | None = None
    needs_key: bool = False
    key_setting: str
    address_setting: str
    model_setting: str

    @property
    def is_provider_itself(self) -> bool:
        """Return True if the server is OpenAI's or Anthropic's own, not a compatible one."""
        return self.address == BASE_URLS[self.provider]

    @property
    def has_missing_key(self) -> bool:
        """Return True if the upstream (model server) is a table `[models.NAME]` that needs an API key and has none."""
        return self.is_named and self.key is None and (self.needs_key or self.is_provider_itself)

    def label(self, model: str) -> str:
        """Return the name of a model of this server, as records of token usage have it and callers select it."""
        return f"{self.name}/{model}" if self.is_named else model


def list_upstreams(settings: Settings) -> dict[str, ModelUpstream]:
    """Return the configured model servers by name.

    Those of OpenAI's and Anthropic's variables are first, then the tables `[models.NAME]`. A table with the name of a
    provider replaces the server of the provider's variables.
    """
    found: dict[str, ModelUpstream] = {}
    for provider in BASE_URLS:
        configured = _read_provider_settings(settings, provider)
        if configured.api_key is not None or configured.base_url is not None:
            found[provider] = build_provider_upstream(provider, settings)
    return found | {name: _build_named_upstream(name, one, settings) for name, one in settings.models.items()}


def build_provider_upstream(provider: Provider, settings: Settings) -> ModelUpstream:
    """Return the model server that the variables of a provider give, such as `OPENAI_BASE_URL`, even if none is set."""
    configured, prefix = _read_provider_settings(settings, provider), provider.upper()
    return ModelUpstream(
        name=provider,
        provider=provider,
        address=_to_address(configured.base_url, provider),
        model=configured.model,
        key=configured.api_key.get_secret_value() if configured.api_key else None,
        seconds=settings.llm_timeout,
        start_seconds=settings.llm_start_timeout,
        window_tokens=settings.window_tokens,
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
    """Return the model server of a table `[models.NAME]`.

    Without an address it is the provider's server and may use the provider's key; that key is never sent to another
    server.
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
        start_seconds=settings.llm_start_timeout,
        is_named=True,
        window_tokens=configured.window_tokens or settings.window_tokens,
        needs_key=configured.api_key_env is not None,
        key_setting=key_setting,
        address_setting=f"base_url of [models.{name}]",
        model_setting=f"model of [models.{name}]",
    )


def format_model_names(names: Sequence[str]) -> str:
    """Return the names of models for an error message, at most MAX_LISTED of them."""
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")


def _to_address(base_url: str | None, provider: Provider) -> str:
    """Return the address of the server.

    `/v1` is added for Anthropic's protocol, whose base URL is usually given without it.
    """
    address = (base_url or BASE_URLS[provider]).rstrip("/")
    return f"{address}/v1" if provider == "anthropic" and not address.endswith("/v1") else address
