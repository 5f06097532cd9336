"""Accumulate the chunks of a streamed reply: text, tool calls, usage and finish reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from newton.ids import new_id
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply, FinishReason, ToolCall

FINISH_REASONS: dict[str, FinishReason] = {"length": "length", "content_filter": "interrupted"}
# The limit of a reply, for endpoints that ignore `max_tokens`; a longer token is rare.
MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT = 32, 4_096
MAX_CALLS = 64


class LenientModel(BaseModel):
    """Base class of response models with only the fields that Newton reads; servers omit and add fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class _FunctionDelta(LenientModel):
    name: str | None = None
    arguments: str | None = None


class _ToolCallDelta(LenientModel):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None


class _Delta(LenientModel):
    content: str | None = None
    tool_calls: list[_ToolCallDelta] | None = None


class _Choice(LenientModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(LenientModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(LenientModel):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


@dataclass(slots=True)
class _PartialCall:
    id: str
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class StreamAccumulator:
    """The messages and the token limit of a request, and the part of its reply received so far."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    pieces: list[str] = field(default_factory=list[str])
    usage: tuple[int, int] | None = None
    finish: FinishReason | None = None
    _partial_calls: dict[int, _PartialCall] = field(default_factory=dict[int, _PartialCall])
    _char_count: int = 0

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls that have a name. A missing or repeated id is replaced by a new one."""
        calls: dict[str, ToolCall] = {}
        for call in self._partial_calls.values():
            if call.name:
                call_id = call.id if call.id and call.id not in calls else f"call_{new_id().hex}"
                calls[call_id] = ToolCall(call_id, call.name, call.arguments.strip() or "{}")
        return tuple(calls.values())

    @property
    def is_empty(self) -> bool:
        return not self.pieces and not self._partial_calls

    def add_chunk(self, chunk_data: object) -> str | None:
        """Add a chunk and return its text. Raises ValueError for an invalid chunk or an oversized reply."""
        chunk = _Chunk.model_validate(chunk_data)
        if (usage := chunk.usage) and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.usage = usage.prompt_tokens, usage.completion_tokens
        if not chunk.choices:
            # A usage chunk is the last one, so the reply is complete even without a finish reason.
            self.finish = self.finish or ("stop" if chunk.usage else None)
            return None
        return self._add_choice(chunk.choices[0])

    def to_reply(self, *, model: str) -> ChatReply:
        """Return the reply. Without reported usage, tokens are counted locally."""
        text, calls = "".join(self.pieces), self.calls
        output = text + "".join(call.name + call.arguments for call in calls)
        count = token_counter.count
        usage = self.usage or (sum(count(message.text) for message in self.messages), count(output))
        return ChatReply(
            text=text,
            model=model,
            input_tokens=usage[0],
            output_tokens=usage[1],
            estimated=self.usage is None,
            finish=self.finish or "interrupted",
            calls=calls,
        )

    def _add_choice(self, choice: _Choice) -> str | None:
        if choice.finish_reason:
            self.finish = FINISH_REASONS.get(choice.finish_reason, "stop")
        if choice.delta is None:
            return None
        piece = choice.delta.content
        self._count_chars(len(piece or ""))
        for part in choice.delta.tool_calls or ():
            self._add_tool_call(part)
        if piece:
            self.pieces.append(piece)
        return piece

    def _add_tool_call(self, part: _ToolCallDelta) -> None:
        """Add a part of a call, or a whole call from servers that do not number calls."""
        index = len(self._partial_calls) if part.index is None else part.index
        call = self._partial_calls.setdefault(index, _PartialCall(part.id or ""))
        if part.function:
            call.name = call.name or part.function.name or ""
            call.arguments += part.function.arguments or ""
            self._count_chars(len(part.function.arguments or ""))
        if len(self._partial_calls) > MAX_CALLS:
            raise ValueError

    def _count_chars(self, chars: int) -> None:
        self._char_count += chars
        if self._char_count > max(self.max_tokens * MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT):
            raise ValueError
