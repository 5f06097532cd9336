"""Context windows of models: their sources, and their division between reply, context and conversation.

The patterns match the messages of OpenAI, Anthropic, Gemini, Mistral, Groq, xAI, vLLM, SGLang, llama.cpp,
Ollama and LM Studio.

A window that the settings, the server or its provider state is used until the server refuses a smaller prompt. The
window learnt from such a refusal is kept for the model at this server: in a file if the server named it, else in the
process. It is dropped when the stated window changes, because then the settings or the server have changed.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast, runtime_checkable
from uuid import uuid4

import yaml

from newton.errors import RefusedSize
from newton.providers.structured_output import EndpointKey

_NUMBER = r"(\d[\d,]*)"
_WINDOW_PATTERNS = (
    rf"\bn_ctx\W{{1,6}}{_NUMBER}",
    rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",
    rf"context (?:length|window|size)(?: is| of(?: only)?| only supports)? \(?{_NUMBER}",
    rf"{_NUMBER} maximum\b",
    rf"maximum (?:allowed length|number of tokens allowed) \(?{_NUMBER}",
    rf"maximum prompt length is {_NUMBER}",
    rf"model token limit: {_NUMBER}",
    rf"\bLimit {_NUMBER}, Requested",
    rf"length should be \[1, {_NUMBER}\]",
)
_PROMPT_PATTERNS = (
    rf"\bn_prompt_tokens\W{{1,4}}{_NUMBER}",
    rf"{_NUMBER} in (?:the messages|your prompt)",
    rf"messages resulted in {_NUMBER}",
    rf"prompt is too long: {_NUMBER}",
    rf"exceed context limit: {_NUMBER} \+",
    rf"\brequest (?:has |contains )?\(?{_NUMBER} (?:input )?tokens",
    rf"\b(?:input|prompt)(?: length| token count| has| contains)? \(?{_NUMBER}",
    rf"keep the first {_NUMBER} tokens",
    rf"\bn_keep\W{{1,4}}{_NUMBER}",
    rf"\brequested: {_NUMBER}",
)
# The fields of an error that are the server's own words. Others may quote the request.
_REFUSAL_FIELDS = ("message", "detail", "code", "type", "n_prompt_tokens", "n_ctx")
_QUOTE = re.compile(r"\{|\binput_value=")  # begins a quoted request in a message, or the error of another server
_MAX_CHARS = 600  # of a message; what follows may quote the request
_EXCESS_PATTERNS = (rf"exceeded (?:max )?context length by {_NUMBER}",)


def read_refusal(body: object) -> str:
    """Return the message in the error body of a server, without the request that it may quote.

    Ollama and proxies send the error of another server as JSON within the message.

    >>> read_refusal({"message": "Field required", "code": 400, "input": "Explain the context window."})
    'message: Field required code: 400'
    """
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        if "error" in fields:
            return read_refusal(fields["error"])
        found = ((name, fields.get(name)) for name in _REFUSAL_FIELDS)
        return " ".join(f"{name}: {read_refusal(value)}" for name, value in found if isinstance(value, str | int))
    text = str(body)
    if (quote := _QUOTE.search(text)) is None:
        return text[:_MAX_CHARS]
    own = text[: quote.start()][:_MAX_CHARS]
    with suppress(ValueError, RecursionError):
        own += read_refusal(json.JSONDecoder().raw_decode(text, quote.start())[0])
    return own


def parse_refused_size(text: str) -> RefusedSize:
    """Return the numbers of tokens in the error message of a server that refuses a prompt as too long; None for others.

    >>> parse_refused_size("prompt is too long: 212000 tokens > 200000 maximum")
    RefusedSize(window=200000, prompt=212000, excess=None)
    >>> parse_refused_size("prompt too long; exceeded max context length by 512 tokens")
    RefusedSize(window=None, prompt=None, excess=512)
    """
    sources = (_WINDOW_PATTERNS, _PROMPT_PATTERNS, _EXCESS_PATTERNS)
    return RefusedSize(*(_find_number(patterns, text) for patterns in sources))


def _find_number(patterns: Sequence[str], text: str) -> int | None:
    matches = (re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    return next((int(found[1].replace(",", "")) for found in matches if found), None)


WindowSource = Literal["setting", "server", "published", "refusal", "default"]

PUBLISHED = Path(__file__).parent / "data" / "published_windows.yaml"
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
    """The context window of a model in tokens, for prompt and reply together, and the source of this number."""

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
        """Return the context window (maximum tokens), as far as it is known without a request."""
        ...

    async def find_window(self) -> ContextWindow:
        """Return the context window; ask the server first if it may know it. A server that fails is ignored."""
        ...

    async def learn_window(self, tokens: int, *, is_guess: bool) -> None:
        """Keep the context window that a refused prompt has shown; a guess only in this process."""
        ...


async def find_window(model: object) -> ContextWindow:
    """Return the context window of a chat model; ASSUMED_WINDOW if it does not implement WindowedModel."""
    return await model.find_window() if isinstance(model, WindowedModel) else ASSUMED_WINDOW


def get_known_window(model: object) -> ContextWindow:
    """Return the context window of a chat model, as far as it is known without a request; else ASSUMED_WINDOW."""
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
    """The context windows that refused prompts have shown, in the JSON file `path`; None keeps them in this process.

    Processes share the file without a lock: an entry that is lost costs one more refusal. The file is read at the start
    and before it is written. Guesses are not written.
    """

    path: Path | None = None
    _kept: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _guesses: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def __post_init__(self) -> None:
        self._read()

    def apply(self, key: EndpointKey, stated: ContextWindow) -> ContextWindow:
        """Return the learnt window if it is smaller than `stated` and was learnt beside the same one; else `stated`."""
        name = _to_name(key)
        tokens, beside = self._guesses.get(name) or self._kept.get(name, (0, 0))
        return ContextWindow(tokens, "refusal") if beside == stated.tokens and 0 < tokens < beside else stated

    def learn(self, key: EndpointKey, tokens: int, stated: ContextWindow, *, is_guess: bool) -> None:
        """Keep the window of a model, beside the one that was `stated` (by the settings, say).

        A failed write is ignored.
        """
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


REPLY_RESERVE = 16_000  # tokens of a large window reserved for the answer
REPLY_DIVISOR = 8  # a small window reserves this fraction
MIN_CONVERSATION_SHARE = 0.8  # of the usable tokens; the context gets at most the rest


class WindowShares(NamedTuple):
    """Maximum tokens of a model call: `usable` for the whole input, and its parts conversation and context."""

    usable: int
    conversation: int
    context: int


def split_window(window: int, *, reply: int, conversation: int, context: int) -> WindowShares:
    """Divide a model's context window between its reply, the conversation and the context from memory.

    All numbers are tokens. The reply keeps at least `reply`, and at least the smaller of 16,000 and an eighth of the
    window. The context gets at most `context` and at most 20 % of the rest; the conversation gets at most
    `conversation` of what then remains.

    >>> split_window(128_000, reply=1_000, conversation=100_000, context=8_000)
    WindowShares(usable=112000, conversation=100000, context=8000)
    >>> split_window(8_000, reply=500, conversation=100_000, context=8_000)
    WindowShares(usable=7000, conversation=5600, context=1400)
    """
    usable = max(window - max(reply, min(REPLY_RESERVE, window // REPLY_DIVISOR)), 0)
    context_limit = min(context, usable - int(usable * MIN_CONVERSATION_SHARE))
    conversation_limit = min(conversation, usable - context_limit)
    return WindowShares(usable, conversation_limit, min(context, usable - conversation_limit))
