"""The chat model interface, independent of the provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

# "length": cut at the token limit; "interrupted": cut by the connection, the deadline or the endpoint.
FinishReason: TypeAlias = Literal["stop", "length", "interrupted"]


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
    """Options of a request: the tools that the model may call, and extra OpenAI body fields."""

    tools: tuple[ToolDefinition, ...] = ()
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a request. An assistant message may contain tool calls; a tool message answers `tool_call_id`.

    `is_history` marks a message of the earlier conversation.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_history: bool = False


def to_openai_message(message: ChatMessage) -> dict[str, object]:
    """Return the message in OpenAI's chat format."""
    body: dict[str, object] = {"role": message.role, "content": message.text}
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
class ChatReply:
    """A complete reply. `estimated` is True when the endpoint reported no usage and tokens were counted locally."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    finish: FinishReason = "stop"
    calls: tuple[ToolCall, ...] = ()


class ChatModel(Protocol):
    """A model that continues a conversation."""

    @property
    def name(self) -> str:
        """Return the model's name in usage records."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | ChatReply]:
        """Yield pieces of the reply, then the ChatReply, whose text is their concatenation.

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
        self, messages: Sequence[ChatMessage], *, max_tokens: int, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        """Stream as `ChatModel.stream`, with tools if the model supports them; the ChatReply contains the calls."""
        ...
