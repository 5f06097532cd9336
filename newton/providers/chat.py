"""Interfaces of chat models, and their messages and replies, independent of the provider."""

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

# "length": cut at the token limit; "interrupted": cut by the connection, the deadline or the endpoint.
FinishReason: TypeAlias = Literal["stop", "length", "interrupted"]
MAX_NAME_CHARS = 64  # of the name of a speaker, at OpenAI
_NOT_IN_NAME = re.compile(r"[\s<|\\/>]+")  # what OpenAI refuses in a name
ContentPart: TypeAlias = Mapping[str, object]  # a part of a message in OpenAI's format: a text, an image, a file


class ToolCall(NamedTuple):
    """A call of a tool by a model. `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolDefinition:
    """A tool that a model may call: its name, and its function definition in OpenAI's format."""

    name: str
    function: Mapping[str, object]

    @cached_property
    def function_json(self) -> str:
        """Return the function definition as JSON text, by which its tokens are counted."""
        return json.dumps(self.function, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """Options of a request to a model.

    `tools` are tools of the caller. `own_tools` are Newton's; they are omitted for a model without tool support.
    `extra_body` are further fields in OpenAI's format, which are sent unchanged. `reply_room` is the number of tokens
    of the context window that the prompt leaves; None if it is not known.
    """

    tools: tuple[ToolDefinition, ...] = ()
    own_tools: tuple[ToolDefinition, ...] = ()
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])
    reply_room: int | None = None

    @property
    def all_tools(self) -> tuple[ToolDefinition, ...]:
        """The tools of Newton and of the caller."""
        return (*self.tools, *self.own_tools)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message sent to a model. The role `assistant` may have tool calls; the role `tool` answers `tool_call_id`.

    `is_history` marks messages before the current input. `parts` (such as images) are sent instead of `text`, which
    describes them. `name` tells apart several speakers of a role. The first `memory_chars` characters of the text are
    the context from memory; what the speaker said follows.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_history: bool = False
    parts: tuple[ContentPart, ...] = ()
    name: str | None = None
    memory_chars: int = 0

    @property
    def attachment_count(self) -> int:
        """Return the number of parts that are not text, such as images and files."""
        return sum(1 for part in self.parts if part.get("type") != "text")

    def join(self, other: "ChatMessage") -> "ChatMessage":
        """Return a message with the content of this message followed by that of `other`, which has the same role."""
        parts = (*self._as_parts(), *other._as_parts()) if self.parts or other.parts else ()
        text = "\n\n".join(filter(None, (self.text, other.text)))
        return replace(self, text=text, calls=other.calls, parts=parts)

    def move_name_to_text(self) -> "ChatMessage":
        """Return the message with the speaker's name at the start of its text, for a server without a name field."""
        if not self.name:
            return self
        start, prefix, parts = self.memory_chars, self.name_prefix, self.parts
        if parts:
            first = 1 if start else 0
            parts = (*parts[:first], {"type": "text", "text": prefix.strip()}, *parts[first:])
        return replace(self, text=self.text[:start] + prefix + self.text[start:], parts=parts, name=None)

    @property
    def name_prefix(self) -> str:
        """Return the speaker's name as a prefix of the text, for a server without a field for names."""
        return f"{self.name}: " if self.name else ""

    def _as_parts(self) -> tuple[ContentPart, ...]:
        return self.parts or ({"type": "text", "text": self.text},)


def to_openai_message(message: ChatMessage) -> dict[str, object]:
    """Convert the message to the format of OpenAI's Chat Completions API."""
    body: dict[str, object] = {"role": message.role, "content": list(message.parts) or message.text}
    if message.name:
        body["name"] = _NOT_IN_NAME.sub("_", message.name)[:MAX_NAME_CHARS]
    if message.calls:
        body["content"] = message.text or None
        body["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.tool_call_id:
        body["tool_call_id"] = message.tool_call_id
    return body


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDelta:
    """A part of a reply that is passed to the client but not stored: reasoning, log probabilities, or another choice.

    The fields are those of a choice in a chunk of OpenAI's format. `index` is 0 for the choice whose text is stored.
    """

    index: int = 0
    delta: Mapping[str, object] = field(default_factory=dict[str, object])
    logprobs: Mapping[str, object] | None = None
    finish_reason: str | None = None


ReplyPiece: TypeAlias = str | ReplyDelta


@dataclass(frozen=True, slots=True)
class CallRestart:
    """Reports that a request was sent once more, because its reply had not begun after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A complete reply. `estimated` means that the server reported no usage, so tokens were counted locally.

    `speech` is what the model said outside of `text`: a refusal, or the transcript of audio. `usage_details` and
    `server_fields` are usage details and other fields of the response, as the server reported them.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    finish: FinishReason = "stop"
    calls: tuple[ToolCall, ...] = ()
    speech: str = ""
    server_finish: str | None = field(default=None, compare=False)
    usage_details: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    server_fields: Mapping[str, object] = field(default_factory=dict[str, object], compare=False)


class ChatModel(Protocol):
    """Interface of a model that continues a conversation."""

    @property
    def name(self) -> str:
        """Return the name of the model, as records of token usage have it."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[str | ChatReply]:
        """Yield the pieces of the reply, then a ChatReply with the whole text and the usage.

        `max_tokens` limits the reply; None leaves the limit to the model. Raises ProviderError when the reply fails or
        is interrupted; before that, yields a ChatReply with what was received, if any, so that all usage is recorded.
        """
        ...


@runtime_checkable
class ToolModel(Protocol):
    """Interface of a chat model that supports tool calls."""

    @property
    def name(self) -> str:
        """Return the name of the model, as records of token usage have it."""
        ...

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[ReplyPiece | CallRestart | ChatReply]:
        """Yield the pieces of the reply, then a ChatReply with text, tool calls and usage.

        A CallRestart may come before the first piece. A limit in `options.extra_body` replaces `max_tokens`. Raises
        ProviderError as `ChatModel.stream`, and RefusedRequestError for an option that the model's server rejects.
        """
        ...


@runtime_checkable
class IsolatableModel(Protocol):
    """Interface of a chat model whose calls are paused while its server fails (circuit breaker)."""

    def isolate(self, purpose: str) -> ChatModel:
        """Return the same model with a circuit breaker of its own: its failures pause only calls for this purpose."""
        ...


@runtime_checkable
class ModelSelector(Protocol):
    """Interface of a chat model whose server offers several models."""

    def with_model(self, name: str | None) -> ChatModel:
        """Return a chat model for the model `name` of the same server; for None, its default model."""
        ...

    async def list_models(self) -> Sequence[str]:
        """Return the names of the models that the server offers.

        Raises ProviderError if the server does not list them.
        """
        ...

    async def resolve_name(self) -> str:
        """Return the name of the model. Raises ProviderError if none is configured and the server offers several."""
        ...
