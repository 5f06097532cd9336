"""What Newton needs of a chat model, whoever serves it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

# "length": the ceiling of tokens cut it; "interrupted": the connection, the deadline or the endpoint did.
Finish: TypeAlias = Literal["stop", "length", "interrupted"]


class Call(NamedTuple):
    """What a model wants a tool to do: an id for it, the tool, and its arguments as JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message. An assistant's may call tools, and a tool's answers the call of that id. One of the `past`
    tells of what was before: nobody says it now, whatever its role."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    past: bool = False


def wire(message: ChatMessage) -> dict[str, object]:
    """The message as the chat protocol of OpenAI has it."""
    plain: dict[str, object] = {"role": message.role, "content": message.text}
    if message.calls:
        plain["content"] = message.text or None
        plain["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.answers:
        plain["tool_call_id"] = message.answers
    return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply, why it ended and what it cost, in tokens.

    `estimated` when the endpoint reported no usage and it was counted here.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False
    finish: Finish = "stop"


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """What it is called in the record of costs."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
        """Pieces of the reply as they come, and then the Reply, whose text is their sum.

        Raises ProviderError when no reply comes or it breaks off. Before that error too comes the Reply, as far as it
        went ("interrupted"), if anything was said or the endpoint named a cost: so no cost goes unrecorded.
        """
        ...
