"""Accumulate the chunks of a streamed reply: text, tool calls, usage and finish reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from newton.ids import new_id
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply, FinishReason, ToolCall

FINISH_REASONS: dict[str, FinishReason] = {"length": "length", "content_filter": "interrupted"}
# What is read of a reply at most: a token is seldom a word of more letters, and an endpoint may not keep to what it was
# asked.
MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT = 32, 4_096
MAX_CALLS = 64


class LenientModel(BaseModel):
    """The used fields of a response; servers omit and add others."""

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
    """The reply received so far, its request, and its token limit."""

    messages: Sequence[ChatMessage]
    max_tokens: int
    pieces: list[str] = field(default_factory=list[str])
    usage: tuple[int, int] | None = None
    finish: FinishReason | None = None
    _partial_calls: dict[int, _PartialCall] = field(default_factory=dict[int, _PartialCall])
    _char_count: int = 0

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls, each id once, without calls that lack a name."""
        made: dict[str, ToolCall] = {}
        for one in self._partial_calls.values():
            known = one.id if one.id and one.id not in made else f"call_{new_id().hex}"
            if one.name:
                made[known] = ToolCall(known, one.name, one.arguments.strip() or "{}")
        return tuple(made.values())

    @property
    def is_empty(self) -> bool:
        return not self.pieces and not self._partial_calls

    def add_chunk(self, chunk_data: object) -> str | None:
        """Return the text of the chunk. Raises ValueError for an invalid chunk or an oversized reply."""
        chunk = _Chunk.model_validate(chunk_data)
        if (usage := chunk.usage) and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.usage = usage.prompt_tokens, usage.completion_tokens
        if not chunk.choices:
            # A usage chunk is the last one, so the reply is complete even without a finish reason.
            self.finish = self.finish or ("stop" if chunk.usage else None)
            return None
        return self._add_choice(chunk.choices[0])

    def to_reply(self, *, model: str) -> ChatReply:
        text, calls = "".join(self.pieces), self.calls
        said = text + "".join(call.name + call.arguments for call in calls)
        spent = self.usage or (sum(token_counter.count_many(m.text for m in self.messages)), token_counter.count(said))
        return ChatReply(
            text=text,
            model=model,
            input_tokens=spent[0],
            output_tokens=spent[1],
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
        """Add a call: most servers number calls and stream arguments; some send whole calls unnumbered."""
        place = len(self._partial_calls) if part.index is None else part.index
        calling = self._partial_calls.setdefault(place, _PartialCall(part.id or ""))
        if part.function:
            calling.name = calling.name or part.function.name or ""
            calling.arguments += part.function.arguments or ""
            self._count_chars(len(part.function.arguments or ""))
        if len(self._partial_calls) > MAX_CALLS:
            raise ValueError

    def _count_chars(self, chars: int) -> None:
        self._char_count += chars
        if self._char_count > max(self.max_tokens * MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT):
            raise ValueError
