"""Encoding of a sent prompt as references to stored texts, and as texts that are stored nowhere else. Pure.

The messages before the input form the *edition* of the prompt, a JSON document. It names ranges of the log, compaction
entries, parts of the context and kept texts, and contains no text of a person. As long as a conversation only grows,
its prompts share one edition: its last range is open and ends where the record says.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias, cast
from uuid import UUID

from newton.agent.prompt_records.spans import PartTokens, PromptOrigin, TextSpan
from newton.dialogue.log import BlockKind
from newton.dialogue.messages import dump_calls
from newton.dialogue.view import ViewMessage
from newton.memory.redaction.redactor import redact_secrets
from newton.providers.chat import ChatMessage, ContentPart, RequestOptions, to_openai_message

TextKind = Literal[
    "edition", "fixed", "instructions", "tools", "options", "cut", "calls", "parts", "injected", "own", "block"
]
Json: TypeAlias = dict[str, Any]

MAX_INLINE_CHARS = 64  # a constant text of at most this length is part of the edition
CACHED_TEXTS = 64  # cleaned texts in memory, of which most are sent with each prompt
STABLE, RECALLED = 0, 1  # the parts of a context in records of earlier versions, which sent them with the input


class KeptText(NamedTuple):
    """A text of a prompt that is stored nowhere else, to be stored with the record of the prompt.

    `is_exact` is False if a secret, or a character that cannot be stored, was removed. A text that was made from
    messages of a session has their positions, so that it is deleted with them.
    """

    kind: TextKind
    content: str
    is_exact: bool = True
    session_id: UUID | None = None
    first: int | None = None
    last: int | None = None

    @property
    def hash(self) -> bytes:
        """Return the SHA-256 of the text and its origin."""
        head = json.dumps([self.kind, self.is_exact, str(self.session_id), self.first, self.last])
        return hashlib.sha256(f"{head}\n{self.content}".encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """The exact request of a model call, as it is passed to the provider of the model."""

    model: str
    messages: Sequence[ChatMessage]
    spans: Sequence[tuple[TextSpan, ...]]
    options: RequestOptions
    max_tokens: int | None
    part_tokens: PartTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPrompt:
    """A sent prompt as JSON that refers to stored texts instead of containing them.

    `edition` are the messages before the input, up to `view_last` if they end with an open range. `tail` are the input
    and the messages after it. Both refer to `texts` by index.
    """

    edition: str
    tail: str
    texts: Sequence[KeptText]
    view_last: int | None


def hash_request(
    salt: bytes,
    *,
    model: str,
    messages: Sequence[Json],
    tools: Sequence[object],
    options: Mapping[str, object],
    max_tokens: int | None,
) -> bytes:
    """Return the SHA-256 of a request with a random salt.

    The messages are in OpenAI's format, with the hashes of attachments in place of the attachments.
    """
    fields = {"model": model, "max_tokens": max_tokens, "messages": messages, "tools": tools, "options": options}
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(salt + text.encode("utf-8", "surrogatepass")).digest()


def hash_sent_request(salt: bytes, sent: SentRequest) -> bytes:
    """Return the hash of a request that is sent. See `hash_request`."""
    return hash_request(
        salt,
        model=sent.model,
        messages=[to_hashed_message(message) for message in sent.messages],
        tools=[tool.function for tool in sent.options.all_tools],
        options=sent.options.extra_body,
        max_tokens=sent.max_tokens,
    )


def to_hashed_message(message: ChatMessage) -> Json:
    """Return a message in OpenAI's format, with the hashes of attachments in place of the attachments."""
    fields = to_openai_message(message)
    if message.parts and not message.calls:  # a message with calls is sent with its text, without its parts
        fields["content"] = [describe_part(part) for part in message.parts]
    return fields


def describe_part(part: ContentPart) -> Json:
    """Return a part of a message; of an attachment only its type, size and SHA-256 in place of the data."""
    if part.get("type") == "text" or "sha256" in part:
        return dict(part)
    data = json.dumps(part, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return {"type": part.get("type"), "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


def encode_prompt(sent: SentRequest, origin: PromptOrigin) -> EncodedPrompt:
    """Encode a request as references to stored texts. A text that none equals is kept, so that decoding is exact."""
    return _PromptEncoder(origin).encode(sent)


@dataclass(slots=True)
class _PromptEncoder:
    """Encodes one prompt. `lines` are the messages of the log, `entries` the compaction entries, and `blocks` those of
    the session, as loaded.
    """

    origin: PromptOrigin
    lines: dict[int, ViewMessage] = field(default_factory=dict[int, ViewMessage])
    notices: dict[int, ViewMessage] = field(default_factory=dict[int, ViewMessage])
    entries: dict[UUID, str] = field(default_factory=dict[UUID, str])
    blocks: Mapping[tuple[BlockKind, int], str] = field(default_factory=dict[tuple[BlockKind, int], str])
    indexes: dict[KeptText, int] = field(default_factory=dict[KeptText, int])

    def __post_init__(self) -> None:
        self.lines = {item.first: item for item in self.origin.loaded if item.kind == "line"}
        self.notices = {item.first: item for item in self.origin.notices}
        self.entries = {item.entry_id: item.text for item in self.origin.loaded if item.entry_id}
        self.blocks = self.origin.block_texts

    def encode(self, sent: SentRequest) -> EncodedPrompt:
        """Encode the messages before the input as the edition, and the others as the tail."""
        pairs = list(zip(sent.messages, sent.spans, strict=True))
        with_input = (n for n, (_, spans) in enumerate(pairs) if any(map(self._is_input, spans)))
        start = next(with_input, len(pairs))
        before = self._encode_messages(pairs[:start])
        view_last = None
        if before and isinstance(before[-1], list):
            view_last = cast("list[int]", before[-1]).pop()
        edition = {
            "messages": before,
            "tools": [
                self._keep("tools", json.dumps([tool.function for tool in tools], ensure_ascii=False))
                for tools in (sent.options.tools, sent.options.own_tools)
                if tools
            ],
            "options": self._keep("options", json.dumps(sent.options.extra_body, ensure_ascii=False))
            if sent.options.extra_body
            else None,
            "filtered": to_ranges(self.origin.filtered),
        }
        tail = self._encode_messages(pairs[start:])
        return EncodedPrompt(edition=_dump(edition), tail=_dump(tail), texts=list(self.indexes), view_last=view_last)

    def _encode_messages(self, pairs: Iterable[tuple[ChatMessage, tuple[TextSpan, ...]]]) -> list[Any]:
        """Encode messages: a range of the log is a list of its first and last position, another message an object."""
        items: list[Any] = []
        for message, spans in pairs:
            position = self._find_same_line(message, spans)
            previous = cast("list[int]", items[-1]) if items and isinstance(items[-1], list) else None
            if position is None:
                items.append(self._encode_message(message, spans))
            elif previous and self.lines[previous[1]].last + 1 == position:
                previous[1] = position
            else:
                items.append([position, position])
        return items

    def _find_same_line(self, message: ChatMessage, spans: tuple[TextSpan, ...]) -> int | None:
        """Return the position of the message that is sent as it is stored, with its text from memory; else None."""
        if message.parts or message.name or [span.kind for span in spans] not in (["line"], ["memory", "line"]):
            return None
        line = self.lines.get(spans[-1].first)
        if spans[-1].first == self.origin.input_position:  # a later call may be the first to send it with a block
            return None
        if line is None or line.is_own_work:  # a range has no notices
            return None
        if (line.role, self._find_block(line) + line.text, line.calls, line.tool_call_id) != (
            message.role,
            message.text,
            message.calls,
            message.tool_call_id,
        ):
            return None
        return line.first

    def _find_block(self, line: ViewMessage) -> str:
        return self.blocks.get(("memory", line.first), "")

    def _encode_message(self, message: ChatMessage, spans: tuple[TextSpan, ...]) -> Json:
        fields: Json = {"role": message.role, "text": self._encode_text(message.text, spans)}
        if message.calls:
            fields["calls"] = self._encode_calls(message, spans)
        if message.tool_call_id:
            fields["id"] = message.tool_call_id
        if message.name:  # it is read from the message of the log, so that it is erased with it
            fields["named"] = next((span.first for span in spans if span.kind == "line"), None)
        if message.parts:
            content = json.dumps([describe_part(part) for part in message.parts], ensure_ascii=False)
            fields["parts"] = self._keep("parts", content, *_find_shown_positions(spans))
        return fields

    def _encode_text(self, text: str, spans: tuple[TextSpan, ...]) -> list[Any]:
        assert sum(span.chars for span in spans) == len(text), "spans cover the text"
        segments: list[Any] = []
        start = 0
        for span in spans:
            part = text[start : start + span.chars]
            start += span.chars
            if part:
                segments.append(self._encode_span(part, span))
        return segments

    def _encode_span(self, text: str, span: TextSpan) -> object:
        """Encode a part of a text: the position of a message, a constant, or an object that names another source."""
        if span.kind == "fixed" and len(text) <= MAX_INLINE_CHARS:
            return text
        if span.kind in ("system", "memory"):
            is_stored = self.blocks.get((span.kind, span.first)) == text
            return {"block": [span.kind, span.first]} if is_stored else {"kept": self._keep("block", text)}
        if span.kind in ("fixed", "instructions", "injected"):
            return {"kept": self._keep(span.kind, text)}
        if span.kind == "line" and self._stored_text(span.first) == text:
            return span.first
        if span.entry_id and self.entries.get(span.entry_id) == text:
            return {"entry": str(span.entry_id)}
        name = "summary" if span.kind == "summary" else "lines"
        return {"kept": self._keep("cut", text, span.first, span.last), name: [span.first, span.last]}

    def _is_input(self, span: TextSpan) -> bool:
        return span.kind == "line" and span.first == self.origin.input_position

    def _stored_text(self, position: int) -> str | None:
        line = self.lines.get(position) or self.notices.get(position)
        return line.text if line else None

    def _encode_calls(self, message: ChatMessage, spans: tuple[TextSpan, ...]) -> object:
        """Return the position of the stored message with these calls; if there is none, the index of a kept text."""
        for span in spans:
            line = self.lines.get(span.first) or self.notices.get(span.first)
            if span.kind == "line" and line and line.calls == message.calls:
                return span.first
        return {"kept": self._keep("calls", dump_calls(message.calls) or "[]", *_find_shown_positions(spans))}

    def _keep(self, kind: TextKind, text: str, first: int | None = None, last: int | None = None) -> int:
        """Return the index of a kept text."""
        content, is_exact = _clean(text)
        session_id = None if first is None else self.origin.session_id
        return self.indexes.setdefault(KeptText(kind, content, is_exact, session_id, first, last), len(self.indexes))


@lru_cache(maxsize=CACHED_TEXTS)
def _clean(text: str) -> tuple[str, bool]:
    """Return the text as it may be stored, and True if that is the same text."""
    cleaned = redact_secrets(text.replace("\0", "").encode("utf-8", "replace").decode())
    return cleaned, cleaned == text


def _find_shown_positions(spans: Sequence[TextSpan]) -> tuple[int | None, int | None]:
    """Return the first and the last position of the log that a text shows; None for both if it shows none."""
    places = [place for span in spans if span.kind in ("line", "entry", "summary") for place in (span.first, span.last)]
    return (min(places), max(places)) if places else (None, None)


def to_ranges(positions: Iterable[int]) -> list[list[int]]:
    """Return the positions as ranges of a first and a last position, in order.

    >>> to_ranges([3, 1, 2, 7])
    [[1, 3], [7, 7]]
    """
    ranges: list[list[int]] = []
    for position in sorted(positions):
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1][1] = position
        else:
            ranges.append([position, position])
    return ranges


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
