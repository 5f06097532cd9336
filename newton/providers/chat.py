"""What Newton needs of a chat model, whoever serves it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

# "length": the ceiling of tokens cut it; "interrupted": the connection, the deadline or the endpoint did.
FinishReason: TypeAlias = Literal["stop", "length", "interrupted"]


class ToolCall(NamedTuple):
    """What a model wants a tool to do: an id for it, the tool, and its arguments as JSON text."""

    id: str
    name: str
    arguments: str


class ToolDefinition(NamedTuple):
    """What a model may call: its name, and all that the chat protocol says of it (with `parameters` as JSON Schema)."""

    name: str
    function: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """How a model is to answer: which tools it may call, and what else was wished, as the chat protocol has it."""

    tools: tuple[ToolDefinition, ...] = ()
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. An assistant's may call tools, and a tool's answers the call of that id. One of the `past`
    tells of what was before: nobody says it now, whatever its role."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    is_history: bool = False


def to_openai_message(message: ChatMessage) -> dict[str, object]:
    """The message as the chat protocol of OpenAI has it."""
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
    """A whole reply, the tools that it calls, why it ended and what it cost, in tokens.

    `estimated` when the endpoint reported no usage and it was counted here.
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
        """What it is called in the record of costs."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | ChatReply]:
        """Pieces of the reply as they come, and then the Reply, whose text is their sum.

        Raises ProviderError when no reply comes or it breaks off. Before that error too comes the Reply, as far as it
        went ("interrupted"), if anything was said or the endpoint named a cost: so no cost goes unrecorded.
        """
        ...


@runtime_checkable
class ToolModel(Protocol):
    """A ChatModel that can be given tools."""

    @property
    def name(self) -> str:
        """As ChatModel says."""
        ...

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        """As ChatModel.stream, in that manner; the Reply holds what it calls. One that cannot call is asked without."""
        ...
