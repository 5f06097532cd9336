"""Context windows of models, and where each is known from.

A window that the settings, the server or its provider state is used until the server refuses a smaller prompt. What is
learnt from such a refusal is kept for the model at this server: in a file if the server named the window, else in the
process. It is dropped as soon as the stated window is another one, for then the settings or the server have changed.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable
from uuid import uuid4

import yaml

from newton.providers.structured_output import EndpointKey

WindowSource = Literal["setting", "server", "published", "refusal", "default"]

PUBLISHED = Path(__file__).parent / "published_windows.yaml"
DEFAULT_WINDOW = 128_000  # tokens, where nobody states the window
MIN_WINDOW = 512  # tokens; a refusal that states less is not about the window
_NAME_ENDS = ("", "-", ":", "@")  # what follows the beginning of a published name
_DESCRIPTIONS: Mapping[WindowSource, str] = {
    "setting": "set by window_tokens",
    "server": "reported by the server",
    "published": "published by the provider",
    "refusal": "learnt from a refusal",
    "default": "assumed",
}


class ContextWindow(NamedTuple):
    """The context window of a model in tokens, for prompt and reply together, and where it is known from."""

    tokens: int
    source: WindowSource

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {_DESCRIPTIONS[self.source]}"


ASSUMED_WINDOW = ContextWindow(DEFAULT_WINDOW, "default")


@runtime_checkable
class WindowedModel(Protocol):
    """Interface of a chat model whose context window is known."""

    @property
    def known_window(self) -> ContextWindow:
        """Return the context window, as far as it is known without a request."""
        ...

    async def find_window(self) -> ContextWindow:
        """Return the context window, after asking the server if that may know it. A server that fails is ignored."""
        ...

    async def learn_window(self, tokens: int, *, is_guess: bool) -> None:
        """Keep the context window that the refusal of a prompt has shown; a guess only in this process."""
        ...


async def find_window(model: object) -> ContextWindow:
    """Return the context window of a chat model; a default for a model that does not know it."""
    return await model.find_window() if isinstance(model, WindowedModel) else ASSUMED_WINDOW


def get_known_window(model: object) -> ContextWindow:
    """Return the context window of a chat model, as far as it is known without a request."""
    return model.known_window if isinstance(model, WindowedModel) else ASSUMED_WINDOW


def find_published_window(provider: str, model: str) -> ContextWindow | None:
    """Return the window that a provider publishes for its model; None for an unknown name."""
    windows = _load_published_windows()[provider]
    found = (name for name in windows if model.startswith(name) and model[len(name) :][:1] in _NAME_ENDS)
    name = max(found, key=len, default=None)
    return ContextWindow(windows[name], "published") if name else None


@cache
def _load_published_windows() -> Mapping[str, Mapping[str, int]]:
    return yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))


@dataclass(slots=True)
class LearntWindows:
    """The windows that refusals have shown, in the JSON file `path`; None keeps them only in this process.

    Processes share the file without a lock: an entry that is lost costs one more refusal. The file is read at the start
    and before it is written. Guesses are not written.
    """

    path: Path | None = None
    _kept: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _guesses: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def __post_init__(self) -> None:
        self._read()

    def apply(self, key: EndpointKey, stated: ContextWindow) -> ContextWindow:
        """Return the learnt window of a model if it is smaller than the stated one and was learnt beside it."""
        name = _to_name(key)
        tokens, beside = self._guesses.get(name) or self._kept.get(name, (0, 0))
        return ContextWindow(tokens, "refusal") if beside == stated.tokens and 0 < tokens < beside else stated

    def learn(self, key: EndpointKey, tokens: int, stated: ContextWindow, *, is_guess: bool) -> None:
        """Keep the window of a model. A file that cannot be written is ignored."""
        name, entry = _to_name(key), [tokens, stated.tokens]
        if is_guess:
            self._guesses[name] = entry
            return
        self._guesses.pop(name, None)
        self._kept = {**self._read(), name: entry}
        if self.path is None:
            return
        draft = self.path.with_name(f"{self.path.name}.{uuid4().hex}")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(self._kept, indent=1), encoding="utf-8")
            draft.replace(self.path)

    def _read(self) -> dict[str, list[int]]:
        if self.path is not None:
            with suppress(OSError, ValueError):
                self._kept = json.loads(self.path.read_text(encoding="utf-8"))
        return self._kept


def _to_name(key: EndpointKey) -> str:
    return f"{key.address} {key.model}"
