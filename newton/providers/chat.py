"""The chat model interface, independent of the provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

# "length": cut at the token limit; "interrupted": cut by the connection, the deadline or the endpoint.
FinishReason: TypeAlias = Literal["stop", "length", "interrupted"]
ContentPart: TypeAlias = Mapping[str, object]  # a part of a message in OpenAI's format: a text, an image, a file


class ToolCall(NamedTuple):
    """A tool call of a model: id, tool name, and arguments as JSON text."""

    id: str
    name: str
    arguments: str


class ToolDefinition(NamedTuple):
    """A tool that a model may call: its name and its OpenAI function definition."""

    name: str
    function: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """Options of a request.

    `tools` are the caller's. `own_tools` are Newton's; a model without tool support is called without them.
    `extra_body` are further fields of an OpenAI body, which are sent unchanged.
    """

    tools: tuple[ToolDefinition, ...] = ()
    own_tools: tuple[ToolDefinition, ...] = ()
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def all_tools(self) -> tuple[ToolDefinition, ...]:
        return (*self.tools, *self.own_tools)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a request. An assistant message may contain tool calls; a tool message answers `tool_call_id`.

    `is_history` marks a message of the earlier conversation. `parts` are sent in place of `text`, which describes them.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_history: bool = False
    parts: tuple[ContentPart, ...] = ()

    @property
    def attachment_count(self) -> int:
        """Return the number of parts that are no text."""
        return sum(1 for part in self.parts if part.get("type") != "text")

    def join(self, other: "ChatMessage") -> "ChatMessage":
        """Return this message, followed by another one of the same role."""
        parts = (*self._as_parts(), *other._as_parts()) if self.parts or other.parts else ()
        return replace(self, text=f"{self.text}\n\n{other.text}".strip(), calls=other.calls, parts=parts)

    def _as_parts(self) -> tuple[ContentPart, ...]:
        return self.parts or ({"type": "text", "text": self.text},)


def to_openai_message(message: ChatMessage) -> dict[str, object]:
    """Return the message in OpenAI's chat format."""
    body: dict[str, object] = {"role": message.role, "content": list(message.parts) or message.text}
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
    """A part of a reply that is passed on but not remembered: reasoning, log probabilities, or another choice.

    The fields are those of a choice in a chunk of OpenAI's format; `index` is 0 for the choice that is remembered.
    """

    index: int = 0
    delta: Mapping[str, object] = field(default_factory=dict[str, object])
    logprobs: Mapping[str, object] | None = None
    finish_reason: str | None = None


ReplyPiece: TypeAlias = str | ReplyDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A complete reply. `estimated` is True when the endpoint reported no usage and tokens were counted locally.

    `speech` is what was said outside of the text: a refusal, or the transcript of audio. `usage_details` are the
    details of the usage by field, and `server_fields` further fields of the response, as the endpoint reported them.
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
    """A model that continues a conversation."""

    @property
    def name(self) -> str:
        """Return the model's name in usage records."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[str | ChatReply]:
        """Yield pieces of the reply, then the ChatReply, whose text is their concatenation.

        `max_tokens` limits the reply; None leaves the limit to the model.
        Raises ProviderError when there is no reply or it is interrupted; before that, yields a ChatReply with the text
        and usage received so far, if any, so that all usage is recorded.
        """
        ...


@runtime_checkable
class ToolModel(Protocol):
    """A ChatModel with tool calls."""

    @property
    def name(self) -> str:
        """See `ChatModel.name`."""
        ...

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, options: RequestOptions
    ) -> AsyncIterator[ReplyPiece | ChatReply]:
        """Stream as `ChatModel.stream`, with the options. The ChatReply contains the calls of tools.

        A limit in `options.extra_body` takes the place of `max_tokens`. Raises RefusedRequestError for an option that
        the model's server refuses.
        """
        ...


@runtime_checkable
class ModelSelector(Protocol):
    """A ChatModel whose server offers several models."""

    def with_model(self, name: str | None) -> ChatModel:
        """Return the named model of the same server; None for the default one."""
        ...

    async def list_models(self) -> Sequence[str]:
        """Return the names of the models that the server offers. Raises ProviderError."""
        ...

    async def resolve_name(self) -> str:
        """Return the model's name. Raises ProviderError when none is configured and the server offers several."""
        ...
