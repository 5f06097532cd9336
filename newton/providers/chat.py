"""What Newton needs of a chat model, whoever serves it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply and what it cost. `estimated` when the endpoint reported no usage and it was counted here."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool = False


class ChatModel(Protocol):
    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
        """Pieces of the reply as they come, and at the end the Reply. Raises ProviderError when it cannot."""
        ...
