"""The chat model interface, independent of the provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

# "length": the token limit cut it; "interrupted": the connection, the deadline or the endpoint did.
FinishReason: TypeAlias = Literal["stop", "length", "interrupted"]


class ToolCall(NamedTuple):
    """A tool call requested by a model: its id, the tool's name, and the arguments as JSON text."""

    id: str
    name: str
    arguments: str


class ToolDefinition(NamedTuple):
    """A tool that a model may call: its name and its OpenAI definition (with `parameters` as JSON Schema)."""

    name: str
    function: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """Options of a request: the tools that the model may call, and extra OpenAI body fields."""

    tools: tuple[ToolDefinition, ...] = ()
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. An assistant message may call tools; a tool message answers the call of `tool_call_id`. With
    `is_history` it is part of the past conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_history: bool = False


def to_openai_message(message: ChatMessage) -> dict[str, object]:
    """Return the message in OpenAI's chat format."""
    plain: dict[str, object] = {"role": message.role, "content": message.text}
    if message.calls:
        plain["content"] = message.text or None
        plain["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A complete reply with its tool calls, finish reason and token usage.

    `estimated` is True when the endpoint reported no usage and the tokens were counted locally.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    finish: FinishReason = "stop"
    calls: tuple[ToolCall, ...] = ()


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """Return the model's name in usage records."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | ChatReply]:
        """Yield pieces of the reply, then the ChatReply, whose text is their concatenation.

        Raises ProviderError when there is no reply or it breaks off. A partial ChatReply ("interrupted") is yielded
        first if there was any text or reported usage, so that all usage is recorded.
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
        self, messages: Sequence[ChatMessage], *, max_tokens: int, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        """Stream as `ChatModel.stream` with these options; the ChatReply holds the calls. A model without tool support
        is called without tools."""
        ...
