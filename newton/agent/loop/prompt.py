"""The prompt of a turn: a system message with the context, as much of the conversation as fits, and the input. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from newton.agent.prompt_records.spans import (
    NO_TOKENS,
    PartTokens,
    PromptMessage,
    PromptOrigin,
    SpanKind,
    TextSpan,
    to_spans,
)
from newton.agent.prompting.caller_instructions import FencedInstructions, fence_instructions
from newton.agent.prompting.memory_delta import INPUT_HEADER
from newton.agent.prompting.system_prompt import load_prompt
from newton.cognition.request import SentMessages
from newton.dialogue.compaction.extractive_summary import truncate_middle
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import dump_calls, guard_name
from newton.dialogue.view import MESSAGE_TOKENS, ViewKind, ViewMessage, count_view_tokens
from newton.memory.memory import TokenCounter
from newton.providers.chat import ChatMessage, ContentPart, RequestOptions

HISTORY_HEADER = load_prompt("history_header.md").rstrip("\n")
ACKNOWLEDGMENT = "Noted."
DEFAULT_OPTIONS = RequestOptions()
# The beginning of a line that a model may take for such a header: with another line break, sign, or end of the line.
_HEADER_LIKE = re.compile(r"(?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])[^\w\n=]{0,8}[=\u2550\ufe66\uff1d]{3}")
MIN_INPUT_DIVISOR = 4  # a truncated input keeps at least max_tokens divided by this
ATTACHMENT_TOKENS = 1_100  # assumed for an image or a file; OpenAI counts 765 for an image of 1024x1024
SPAN_KINDS: Mapping[ViewKind, SpanKind] = {"line": "line", "mask": "line", "injected": "injected", "left_out": "fixed"}
COUNTED_CHARS = 100_000  # of a long text at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """The messages and options of one model call. `spans` are the sources of the text of each message.

    `tokens` is the local token count, without the overhead per message; `part_tokens` is the same by part.
    """

    messages: tuple[ChatMessage, ...]
    tokens: int
    options: RequestOptions = DEFAULT_OPTIONS
    spans: tuple[tuple[TextSpan, ...], ...] = ()
    part_tokens: PartTokens = NO_TOKENS


class MessageParts(NamedTuple):
    """The content of a caller's message that has more than text, and the text that is stored in its place."""

    text: str
    parts: tuple[ContentPart, ...]

    @property
    def attachment_tokens(self) -> int:
        return ATTACHMENT_TOKENS * sum(1 for part in self.parts if part.get("type") != "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBuilder:
    """The parts of a prompt, and the methods that count and assemble them.

    A prompt only grows from turn to turn, so that the model's server can reuse its prompt cache: the caller's
    `instructions` and the `system` message of the session, then the conversation (`view`), each input after the text
    from memory that it was sent with. `memory` is that text for the new input `text`, and `tool_messages` (calls and
    results of this turn) follow it. `attachments` maps the ref of a message to its content if that is more than text;
    `input_parts` is the same for the input, and `input_name` its speaker. With an empty `system`, the prompt is the
    caller's alone. Without a text there is no input, and the model continues the conversation. `origin` is None for a
    prompt of which no record is stored.
    """

    view: Sequence[ViewMessage]
    text: str
    text_tokens: int
    system: str = ""
    memory: str = ""
    overhead_per_message: int = MESSAGE_TOKENS
    instructions: str = ""
    tool_messages: tuple[PromptMessage, ...] = ()
    options: RequestOptions = DEFAULT_OPTIONS
    attachments: Mapping[str, MessageParts] = field(default_factory=dict[str, MessageParts])
    input_parts: MessageParts | None = None
    input_name: str | None = None
    origin: PromptOrigin | None = None

    def required_tokens(self, max_tokens: int, *, count_tokens: TokenCounter) -> int:
        """Return the minimum tokens of the prompt: of the parts that are never shortened, and of a truncated input."""
        input_tokens = min(self.text_tokens, max_tokens // MIN_INPUT_DIVISOR)
        overhead = self.overhead_tokens(count_tokens=count_tokens) + 2 * self.overhead_per_message
        return count_tokens(self.system) + overhead + input_tokens

    def overhead_tokens(self, *, count_tokens: TokenCounter) -> int:
        """Return the tokens of the instructions, tool messages, tool definitions, and attachments of the input."""
        attached = self.input_parts.attachment_tokens if self.input_parts else 0
        tools = count_tool_tokens(self.options, count_tokens=count_tokens)
        return count_tokens("".join(self.fenced_instructions)) + attached + self._tool_work_tokens(count_tokens) + tools

    def _tool_work_tokens(self, count_tokens: TokenCounter) -> int:
        sent = [one.message for one in self.tool_messages]
        overhead = (self.overhead_per_message - MESSAGE_TOKENS) * len(sent)
        return sum(count_message_tokens(sent, count_tokens=count_tokens)) + overhead

    def build(self, max_tokens: int, *, count_tokens: TokenCounter) -> ModelRequest:
        """Build a request of at most `max_tokens`, if possible. The conversation is shortened first, then the input."""
        system, memory = self._build_system_message(), guard_input(self.memory, self.text)
        overhead = self.overhead_tokens(count_tokens=count_tokens) - count_tokens("".join(self.fenced_instructions))
        per_message = self.overhead_per_message
        system_tokens = count_tokens(system.message.text) if system.message.text else 0
        memory_tokens = count_tokens(memory) if memory else 0
        fixed = system_tokens + memory_tokens + 2 * per_message + overhead
        text, tokens = self.text, self.text_tokens
        if fixed + tokens > max_tokens:
            tokens = max(max_tokens - fixed, max_tokens // MIN_INPUT_DIVISOR, 1)
            text = truncate_middle(text, max_tokens=tokens, count_tokens=count_tokens)
        separators = count_separator_tokens(self.view, overhead_per_message=per_message, count_tokens=count_tokens)
        available = max(max_tokens - fixed - tokens - separators, 0)
        view = fit_to_budget(
            self.view, max_tokens=available, count_tokens=count_tokens, protected_turns=0, overhead=per_message
        )
        conversation = [
            to_prompt_message(item, find_parts(item, self.attachments)) for item in _pair_tool_results(view)
        ]
        asked = [self._build_input(memory, text)] if memory or text or self.input_parts else []
        rest = merge_messages([*conversation, *asked, *self.tool_messages])
        all_messages = [*([system] if system.message.text else []), *rest]
        messages = tuple(one.message for one in all_messages)
        counts = count_message_tokens([one.message for one in rest], count_tokens=count_tokens)
        tokens_sent = system_tokens + sum(counts) - MESSAGE_TOKENS * len(rest)
        tools = count_tool_tokens(self.options, count_tokens=count_tokens)
        return ModelRequest(
            messages=messages,
            tokens=tokens_sent + tools,
            options=self.options,
            spans=tuple(one.spans for one in all_messages),
            part_tokens=PartTokens(
                system=system_tokens,
                conversation=count_view_tokens(view) - MESSAGE_TOKENS * len(view),
                memories=memory_tokens,
                input=tokens + (self.input_parts.attachment_tokens if self.input_parts else 0),
                tool_work=self._tool_work_tokens(count_tokens) - per_message * len(self.tool_messages),
                tools=tools,
            ),
        )

    @property
    def fenced_instructions(self) -> FencedInstructions:
        """Return the caller's instructions between lines of Newton; as they are, if Newton adds no system message."""
        if not (self.instructions and self.system):
            return FencedInstructions("", self.instructions, "")
        return fence_instructions(self.instructions)

    def _build_system_message(self) -> PromptMessage:
        """Return the caller's instructions and the system message of the session as one message."""
        header, instructions, end = self.fenced_instructions
        place = self.origin.system_position if self.origin else -1
        spans = (
            *to_spans((header, "fixed"), (instructions, "instructions"), (end, "fixed")),
            *([TextSpan(len(self.system), "system", place, place)] if self.system else ()),
        )
        return PromptMessage(ChatMessage("system", f"{header}{instructions}{end}{self.system}"), spans)

    def _build_input(self, memory: str, text: str) -> PromptMessage:
        """Return the message of the input, with the text from memory before it."""
        place = self.origin.input_position if self.origin else -1
        return _put_memory_first(
            memory,
            PromptMessage(
                ChatMessage(
                    "user",
                    text,
                    parts=self._find_input_parts(text),
                    name=self.input_name and guard_name(self.input_name),
                ),
                (TextSpan(len(text), "line", place, place),),
            ),
            place,
        )

    def _find_input_parts(self, text: str) -> tuple[ContentPart, ...]:
        """Return the content of the input; () if the input is only text.

        If the input was shortened, its text parts are replaced by the shortened text.
        """
        if self.input_parts is None or text == self.text:
            return self.input_parts.parts if self.input_parts else ()
        others = (part for part in self.input_parts.parts if part.get("type") != "text")
        return ({"type": "text", "text": text}, *others)


def guard_input(memory: str, text: str) -> str:
    """Return the text from memory before an input; without one, a header if the input has a line like a header.

    This prevents that text of a person or a program passes for text of the system.
    """
    return memory or (INPUT_HEADER if _HEADER_LIKE.search(text) else "")


def _put_memory_first(memory: str, one: PromptMessage, place: int) -> PromptMessage:
    """Return the message of an input with the text from memory put before it."""
    if not memory:
        return one
    message, span = one.message, TextSpan(len(memory), "fixed" if memory == INPUT_HEADER else "memory", place, place)
    parts = ({"type": "text", "text": memory}, *message.parts) if message.parts else ()
    message = replace(message, text=memory + message.text, parts=parts, memory_chars=len(memory))
    return PromptMessage(message, (span, *one.spans))


def count_tool_tokens(options: RequestOptions, *, count_tokens: TokenCounter) -> int:
    """Return the tokens of the definitions of all tools."""
    return sum(_count_definition_tokens(tool.function_json, count_tokens) for tool in options.all_tools)


@lru_cache(maxsize=512)  # definitions of tools hardly ever change, and each turn counts them several times
def _count_definition_tokens(text: str, count_tokens: TokenCounter) -> int:
    return count_tokens(text)


def exceeds_tokens(text: str, max_tokens: int, *, count_tokens: TokenCounter) -> bool:
    """Return whether a text has more than `max_tokens`. Counting stops as soon as the limit is exceeded."""
    total = 0
    for start in range(0, len(text), COUNTED_CHARS):
        total += count_tokens(text[start : start + COUNTED_CHARS])
        if total > max_tokens:
            return True
    return False


def count_separator_tokens(
    view: Sequence[ViewMessage], *, overhead_per_message: int, count_tokens: TokenCounter
) -> int:
    """Return the most tokens that headers and acknowledgments around quoted earlier messages may need.

    Summaries and injected messages are sent as quotations: each run of them may need a header, and an acknowledgment
    before and after it; so may a notice of omitted messages at the start. Fewer messages never need more.
    """
    if not view:
        return 0
    runs = sum(1 for past, _ in groupby(view, key=lambda item: item.is_history) if past) + (not view[0].is_history)
    return runs * (count_tokens(HISTORY_HEADER) + 1 + 2 * (count_tokens(ACKNOWLEDGMENT) + overhead_per_message))


def find_sent_messages(session_id: UUID, view: Sequence[ViewMessage], *, end: int) -> SentMessages:
    """Return which messages of the session the model is sent as they are, so that the context does not repeat them.

    `view` must be the final messages of the prompt: one dropped later would be in neither part. `end` is the last
    position.
    """
    # the places of notices after a message too: they have nothing that a context could show
    sent = {place for item in view if item.kind == "line" for place in range(item.first, item.last + 1)}
    first = min(sent, default=end + 1)
    return SentMessages(
        session_id=session_id, first_position=first, unsent_positions=frozenset(range(first, end + 1)) - sent
    )


def to_chat_messages(view: Sequence[ViewMessage]) -> tuple[ChatMessage, ...]:
    """Convert the messages of a session (`view`) to chat messages, with each tool result directly after its call.

    Calls without a result are dropped. A result whose call is missing becomes a message of the user that quotes it.
    """
    return tuple(one.message for one in to_prompt_messages(view))


def to_prompt_messages(view: Sequence[ViewMessage]) -> tuple[PromptMessage, ...]:
    """Convert the messages of a session to messages to send, with the sources of their texts, as `to_chat_messages`."""
    return merge_messages(map(to_prompt_message, _pair_tool_results(view)))


def count_message_tokens(messages: Sequence[ChatMessage], *, count_tokens: TokenCounter) -> list[int]:
    """Return the tokens of each message: text, tool calls, attachments, and MESSAGE_TOKENS for the message itself."""
    return [
        count_tokens(message.text)
        + MESSAGE_TOKENS
        + ATTACHMENT_TOKENS * message.attachment_count
        + (count_tokens(dump_calls(message.calls) or "") if message.calls else 0)
        for message in messages
    ]


def _pair_tool_results(view: Sequence[ViewMessage]) -> Iterator[ViewMessage]:
    """Yield the messages with each tool result directly after its call, without calls that have no result."""
    results: dict[int, list[ViewMessage]] = {}
    open_calls: dict[str, int] = {}
    moved: set[int] = set()
    for index, item in enumerate(view):
        if item.tool_call_id in open_calls:
            results.setdefault(open_calls.pop(item.tool_call_id), []).append(item)
            moved.add(index)
        open_calls |= {call.id: index for call in item.calls}
    for index, item in enumerate(view):
        answers = results.get(index, [])
        answered_ids = {answer.tool_call_id for answer in answers}
        calls = tuple(call for call in item.calls if call.id in answered_ids)
        if index not in moved and (calls or item.text or not item.calls):
            yield item._replace(calls=calls, tool_call_id=None)
            yield from answers


def merge_messages(messages: Iterable[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Merge consecutive user messages, and consecutive assistant messages, because many models reject them.

    Of two speakers with different names, the names are put before their texts. An assistant message with tool calls is
    not merged with the next one. Between a user message that quotes earlier conversation (`is_history`) and one that a
    person just sent, and before one that begins with text from memory, a short assistant message is inserted instead.
    """
    merged: list[PromptMessage] = []
    for one in messages:
        message, last = one.message, merged[-1].message if merged else None
        if last is None or last.role != message.role or message.role not in ("user", "assistant") or last.calls:
            merged.append(one)
        elif last.is_history == message.is_history and not message.memory_chars:
            both = (merged[-1], one) if last.name == message.name else (merged[-1].name_in_text(), one.name_in_text())
            merged[-1] = both[0].join(both[1])
        else:
            acknowledgment = ChatMessage("assistant", ACKNOWLEDGMENT)
            merged += [PromptMessage(acknowledgment, to_spans((ACKNOWLEDGMENT, "fixed"))), one]
    return tuple(one.prefix(f"{HISTORY_HEADER}\n") if one.message.is_history else one for one in merged)


def to_prompt_message(item: ViewMessage, content: MessageParts | None = None) -> PromptMessage:
    """Convert a message of a session to a message to send. `content`, if given, is sent in place of its text.

    A tool result without its call becomes a message of the user that quotes it.
    """
    kind = "entry" if item.entry_id else SPAN_KINDS.get(item.kind, "summary")
    spans = (TextSpan(len(item.text), kind, item.first, item.last, item.entry_id),)
    if item.role == "tool" and item.tool_call_id is None:
        message = PromptMessage(ChatMessage("user", item.text, is_history=True), spans)
        return message.prefix(f"[{item.name or 'tool'}]\n")
    parts = content.parts if content else ()
    name = guard_name(item.name) if item.name and item.role in ("user", "assistant") and not item.is_history else None
    message = ChatMessage(
        item.role, item.text, item.calls, item.tool_call_id, is_history=item.is_history, parts=parts, name=name
    )
    block = item.memory.text if item.memory else ""
    memory = guard_input(block, item.text) if item.is_input and item.kind == "line" else ""
    return _put_memory_first(memory, PromptMessage(message, spans), item.first)


def find_parts(item: ViewMessage, attachments: Mapping[str, MessageParts]) -> MessageParts | None:
    """Return the content with attachments that the caller sent again for a message; None if its text was shortened."""
    found = attachments.get(item.ref or "")
    return found if found and item.kind == "line" and item.text == found.text else None


def add_attachment_tokens(view: Sequence[ViewMessage], attachments: Mapping[str, MessageParts]) -> list[ViewMessage]:
    """Return the messages, with the tokens of attachments added to those of the messages that have them.

    `attachments` maps the ref of a message to its content.
    """
    if not attachments:
        return list(view)
    found = [find_parts(item, attachments) for item in view]
    return [
        item._replace(tokens=item.tokens + parts.attachment_tokens) if parts else item
        for item, parts in zip(view, found, strict=True)
    ]
