"""Spans: the source of each part of a text in a prompt. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple
from uuid import UUID

from newton.dialogue.log import BlockKind, PromptBlock
from newton.dialogue.view import ViewMessage
from newton.providers.chat import ChatMessage

# line: a message of the log; entry: a compaction entry; summary: one that is not stored; injected: messages of another
# session; system and memory: a system message of the session, and a block before an input; instructions: the caller's
# system message; fixed: a constant of Newton
SpanKind = Literal["line", "entry", "summary", "injected", "system", "memory", "instructions", "fixed"]
SEPARATOR = "\n\n"  # between texts that are joined to one message


class TextSpan(NamedTuple):
    """`chars` characters of a text and their source. `first` to `last` are the positions in the log that they show."""

    chars: int
    kind: SpanKind
    first: int = -1
    last: int = -1
    entry_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message to send, and the sources of its text: `spans` cover the text without gaps."""

    message: ChatMessage
    spans: tuple[TextSpan, ...] = ()

    def join(self, other: "PromptMessage") -> "PromptMessage":
        """Return the content of this message followed by that of `other`, as `ChatMessage.join` does."""
        both = self.message.text and other.message.text
        between = (TextSpan(len(SEPARATOR), "fixed"),) if both else ()
        return PromptMessage(self.message.join(other.message), (*self.spans, *between, *other.spans))

    def name_in_text(self) -> "PromptMessage":
        """Return the message with the name of its speaker before its text, as `ChatMessage.move_name_to_text` does."""
        if not self.message.name:
            return self
        spans, chars = list(self.spans), 0
        while spans and chars < self.message.memory_chars:
            chars += spans.pop(0).chars
        before = self.spans[: len(self.spans) - len(spans)]
        named = TextSpan(len(self.message.name_prefix), "fixed")
        return PromptMessage(self.message.move_name_to_text(), (*before, named, *spans))

    def prefix(self, text: str) -> "PromptMessage":
        """Return the message with a constant text before it."""
        message = replace(self.message, text=f"{text}{self.message.text}")
        return PromptMessage(message, (TextSpan(len(text), "fixed"), *self.spans))


def to_spans(*parts: tuple[str, SpanKind]) -> tuple[TextSpan, ...]:
    """Return the spans of texts that stand one after the other; none for an empty text."""
    return tuple(TextSpan(len(text), kind) for text, kind in parts if text)


@dataclass(frozen=True, slots=True)
class PartTokens:
    """The local token counts of the parts of a prompt. `system` is the system message, `tool_work` this turn's calls.

    `memories` is the text from memory that is sent with the input; such texts before earlier inputs are part of
    `conversation`.
    """

    system: int = 0
    conversation: int = 0
    memories: int = 0
    input: int = 0
    tool_work: int = 0
    tools: int = 0


NO_TOKENS = PartTokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptOrigin:
    """Where a prompt belongs in its session, and what of it is stored: the data from which its record is made.

    `input_position` is the position of the input, `loaded` the view (messages for a model) from which the conversation
    was selected, and `filtered` the positions of its messages that this kind of turn does not send. `notices` are the
    tool calls and results of this turn, as stored. `bundle_id` is the context; None without memory. `system_position`
    is the place of the system message among the blocks of the session, and `stored_system` its text if it was sent
    before; `new_blocks` are sent for the first time.
    """

    session_id: UUID
    input_position: int
    loaded: Sequence[ViewMessage]
    filtered: frozenset[int] = frozenset()
    notices: tuple[ViewMessage, ...] = ()
    bundle_id: UUID | None = None
    system_position: int = -1
    stored_system: str = ""
    new_blocks: tuple[PromptBlock, ...] = ()

    @property
    def block_texts(self) -> Mapping[tuple[BlockKind, int], str]:
        """Return the system message and the texts before inputs to which the record may refer, by kind and position."""
        texts = dict[tuple[BlockKind, int], str](((one.kind, one.position), one.text) for one in self.new_blocks)
        for item in self.loaded:
            if item.memory:
                texts["memory", item.first] = item.memory.text
        if self.stored_system:
            texts["system", self.system_position] = self.stored_system
        return texts
