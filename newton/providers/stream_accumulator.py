"""Accumulation of a streamed reply: text, tool calls, usage and finish reason. Other parts are passed on unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from newton.ids import new_id
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply, FinishReason, ReplyDelta, ReplyPiece, ToolCall

FINISH_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "content_filter": "interrupted",
    "error": "interrupted",  # of OpenRouter
    "abort": "interrupted",  # of vLLM
}
# The limit of a reply, for endpoints that ignore `max_tokens`; a longer token is rare.
MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT = 32, 4_096
MAX_CHARS = 800_000  # of the text and the calls of a reply without a limit of tokens
MAX_OTHER_CHARS = 32_000_000  # of what is passed on beside them, such as audio
MAX_CALLS = 64
REASONING_FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})  # names differ by server
SERVER_FIELDS = ("service_tier", "system_fingerprint")  # of a response, passed on


class LenientModel(BaseModel):
    """Base class of models of a server's response. Unknown fields are ignored, because servers add fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class _FunctionDelta(LenientModel):
    name: str | None = None
    arguments: str | None = None


class _ToolCallDelta(LenientModel):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None
    extra_content: dict[str, Any] | None = None  # of Gemini: the signature of the reasoning that led to the call


class _Audio(LenientModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    transcript: str | None = None


class _Delta(LenientModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    audio: _Audio | None = None
    tool_calls: list[_ToolCallDelta] | None = None

    @property
    def other_fields(self) -> dict[str, Any]:
        """Return the fields that are neither text nor tool calls, such as reasoning, a refusal or audio."""
        fields = {"refusal": self.refusal, **(self.model_extra or {})}
        fields["audio"] = self.audio and self.audio.model_dump(exclude_unset=True)
        return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


class _Choice(LenientModel):
    index: int | None = None
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None  # of a response that is no stream
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class _Usage(LenientModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None

    @property
    def details(self) -> dict[str, dict[str, int]]:
        """Return the token counts in the details of prompt and completion, as far as the server reports them."""
        found = {
            "prompt_tokens_details": _keep_counts(self.prompt_tokens_details or {}),
            "completion_tokens_details": _keep_counts(self.completion_tokens_details or {}),
        }
        return {name: counts for name, counts in found.items() if counts}


class _Chunk(LenientModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    choices: list[_Choice] | None = None
    usage: _Usage | None = None


def _keep_counts(fields: Mapping[str, object]) -> dict[str, int]:
    return {name: value for name, value in fields.items() if isinstance(value, int)}


@dataclass(slots=True)
class _PartialCall:
    id: str
    name: str = ""
    arguments: str = ""
    extras: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class StreamAccumulator:
    """The part of a streamed reply received so far, with the messages and the token limit of its request."""

    messages: Sequence[ChatMessage]
    max_tokens: int | None
    pieces: list[str] = field(default_factory=list[str])
    usage: tuple[int, int] | None = None
    finish: FinishReason | None = None
    server_finish: str | None = None
    usage_details: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    server_fields: dict[str, object] = field(default_factory=dict[str, object])
    _speech: list[str] = field(default_factory=list[str])
    _has_other_output: bool = False
    _partial_calls: dict[int, _PartialCall] = field(default_factory=dict[int, _PartialCall])
    _char_count: int = 0
    _other_char_count: int = 0

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls that have a name. A missing or repeated id is replaced by a new one."""
        calls: dict[str, ToolCall] = {}
        for call in self._partial_calls.values():
            if call.name:
                call.id = call.id if call.id and call.id not in calls else f"call_{new_id().hex}"
                calls[call.id] = ToolCall(call.id, call.name, call.arguments.strip() or "{}")
        return tuple(calls.values())

    @property
    def call_extras(self) -> dict[str, Mapping[str, object]]:
        """Return the data that the server attached to tool calls, by the id of the call."""
        found = {
            call.id: self._partial_calls[n].extras for n, call in zip(self._named_indices, self.calls, strict=True)
        }
        return {call_id: extras for call_id, extras in found.items() if extras}

    @property
    def _named_indices(self) -> list[int]:
        return [index for index, call in self._partial_calls.items() if call.name]

    @property
    def is_empty(self) -> bool:
        """Return True if the model has sent no output yet. Reasoning does not count as output."""
        return not self.pieces and not self._partial_calls and not self._has_other_output

    def add_chunk(self, chunk_data: object) -> list[ReplyPiece]:
        """Add a chunk, or a whole response, of OpenAI's format.

        Return its text and other parts, in the form to pass on. Raises ValueError for an invalid chunk, or if the reply
        becomes too long.
        """
        chunk = _Chunk.model_validate(chunk_data)
        if (usage := chunk.usage) and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.usage, self.usage_details = (usage.prompt_tokens, usage.completion_tokens), usage.details
        extra = chunk.model_extra or {}
        self.server_fields |= {name: extra[name] for name in SERVER_FIELDS if extra.get(name) is not None}
        if not chunk.choices:
            # A usage chunk is the last one, so the reply is complete even without a finish reason.
            self.finish = self.finish or ("stop" if chunk.usage else None)
            return []
        return [piece for choice in chunk.choices for piece in self._add_choice(choice)]

    def to_reply(self, *, model: str) -> ChatReply:
        """Return the whole reply. If the server reported no usage, the tokens are counted locally."""
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
            speech="".join(self._speech),
            server_finish=self.server_finish,
            usage_details=self.usage_details,
            server_fields=self.server_fields,
        )

    def _add_choice(self, choice: _Choice) -> list[ReplyPiece]:
        """Add a choice of a chunk, and return its parts to pass on. Of all choices but the first, nothing is stored."""
        fields = choice.delta or choice.message or {}
        if choice.index:
            self._count_other_chars(fields)
            return [
                ReplyDelta(
                    index=choice.index, delta=fields, logprobs=choice.logprobs, finish_reason=choice.finish_reason
                )
            ]
        if choice.finish_reason:
            self.finish = FINISH_REASONS.get(choice.finish_reason, "stop")
            self.server_finish = choice.finish_reason
        delta = _Delta.model_validate(fields)
        self._count_chars(len(delta.content or ""))
        for part in delta.tool_calls or ():
            self._add_tool_call(part)
        transcript = delta.audio.transcript if delta.audio else None
        self._speech += [text for text in (delta.refusal, transcript) if text]
        return [*self._add_text(delta.content), *self._add_other_fields(delta.other_fields, choice.logprobs)]

    def _add_text(self, text: str | None) -> list[ReplyPiece]:
        if not text:
            return []
        self.pieces.append(text)
        return [text]

    def _add_other_fields(self, fields: dict[str, Any], logprobs: dict[str, Any] | None) -> list[ReplyPiece]:
        if not fields and not logprobs:
            return []
        self._count_other_chars(fields)
        self._has_other_output = self._has_other_output or not fields.keys() <= REASONING_FIELDS
        return [ReplyDelta(delta=fields, logprobs=logprobs)]

    def _add_tool_call(self, part: _ToolCallDelta) -> None:
        """Add a part of a tool call. A part without a number is a whole call, as some servers send it."""
        index = len(self._partial_calls) if part.index is None else part.index
        call = self._partial_calls.setdefault(index, _PartialCall(part.id or ""))
        call.extras |= part.extra_content or {}
        if part.function:
            call.name = call.name or part.function.name or ""
            call.arguments += part.function.arguments or ""
            self._count_chars(len(part.function.arguments or ""))
        if len(self._partial_calls) > MAX_CALLS:
            raise ValueError

    def _count_chars(self, chars: int) -> None:
        self._char_count += chars
        limit = MAX_CHARS if self.max_tokens is None else max(self.max_tokens * MAX_CHARS_PER_TOKEN, MIN_CHAR_LIMIT)
        if self._char_count > limit:
            raise ValueError

    def _count_other_chars(self, fields: Mapping[str, object]) -> None:
        self._other_char_count += _count_chars(fields)
        if self._other_char_count > MAX_OTHER_CHARS:
            raise ValueError


def _count_chars(value: object) -> int:
    """Return the number of characters of all texts in a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_count_chars(one) for one in cast("Mapping[str, object]", value).values())
    return sum(_count_chars(one) for one in cast("list[object]", value)) if isinstance(value, list) else 0
