"""Reproduction of a sent prompt from its record, and the comparison with the log. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from pydantic import computed_field

from newton.agent.prompt_records.prompt_encoder import RECALLED, Json, hash_request
from newton.agent.prompt_records.prompt_store import PromptRecord, PromptSources, StoredPrompt
from newton.dialogue.log import FORGOTTEN as FORGOTTEN_BLOCK
from newton.dialogue.log import BlockKind
from newton.dialogue.messages import Role, StoredMessage, guard_name
from newton.memory.representations import one_line
from newton.providers.chat import ChatMessage, ToolCall, to_openai_message

MAX_PREVIEW_CHARS = 200
FORGOTTEN = "[forgotten]"  # the content of a forgotten message of the log
ERASED = "[erased: {}]"
GONE_CONTEXT = "the context, which contained a memory that was forgotten"
GONE_ENTRY = "a summary of messages of which one was forgotten"
GONE_TEXT = "a text that was forgotten or erased"
GONE_EDITION = "the messages before the input"

LineStatus = Literal["sent", "shortened", "summarized", "over the window", "filtered", "notice", "later"]
STATUS_REASONS: Mapping[LineStatus, str] = {
    "sent": "sent as it is",
    "shortened": "shortened: the whole message did not fit, or an old tool output was masked",
    "summarized": "replaced by a summary (compaction)",
    "over the window": "left out: it did not fit into the window, or a tool call had no result",
    "filtered": "left out: this interface sends neither system messages nor tool calls of others",
    "notice": "left out: text of Newton itself is never sent to a model, and a tool call only beside its tools",
    "later": "stored after the input of this turn",
}


@dataclass(frozen=True, slots=True)
class PromptGap:
    """A place of a prompt that cannot be reproduced: the index of its message from 0, null for tools; and why."""

    message: int | None
    reason: str


class ReproducedMessage(NamedTuple):
    """A message of a prompt as it was sent, in OpenAI's format, and what its text was made from."""

    fields: Json
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePreview:
    """The beginning of a message of the log."""

    position: int
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class LogRange:
    """A range of a session's messages, and whether a prompt had them. `compaction_id` is a summary in their place."""

    first: int
    last: int
    status: LineStatus
    compaction_id: UUID | None = None
    detail: str | None = None
    messages: Sequence[LinePreview] = ()

    @computed_field
    @property
    def reason(self) -> str:
        return STATUS_REASONS[self.status]

    def continues(self, other: "LogRange") -> bool:
        """Return whether the messages of both ranges have the same status for the same reason."""
        return (self.status, self.compaction_id, self.detail) == (other.status, other.compaction_id, other.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptReproduction(PromptRecord):
    """A prompt as the model received it, in one model call.

    `messages` are in OpenAI's format; `sources` of each say what its text was made from. Of an image or a file,
    `content` has the hash in place of the data. `is_verified` is true if the prompt equals the request that was sent,
    byte for byte; otherwise `mismatch` says why not. `log` says what of the conversation it contained, and what was
    left out.
    """

    messages: Sequence[Json]
    tools: Sequence[Json]
    options: Mapping[str, Any]
    gaps: Sequence[PromptGap]
    is_verified: bool
    mismatch: str | None
    log: Sequence[LogRange]

    @computed_field
    @property
    def attachments(self) -> int:
        """The number of images and files, of which only the hash is stored."""
        contents = [one["content"] for one in self.messages]
        lists = [cast("list[Json]", content) for content in contents if isinstance(content, list)]
        return sum("sha256" in part for parts in lists for part in parts)


def reproduce_prompt(record: StoredPrompt, sources: PromptSources) -> PromptReproduction:
    """Rebuild a prompt from its record. A text that was deleted since is replaced by a note in brackets."""
    return _PromptDecoder(record, sources).decode()


@dataclass(slots=True)
class _PromptDecoder:
    """Rebuilds one prompt. `gaps` and `inexact` collect why it may differ from what was sent."""

    record: StoredPrompt
    sources: PromptSources
    gaps: list[PromptGap] = field(default_factory=list[PromptGap])
    inexact: set[str] = field(default_factory=set[str])
    index: int | None = 0

    def decode(self) -> PromptReproduction:
        """Rebuild the messages, tools and options, and compare their hash with that of what was sent."""
        edition = self._load_edition()
        items = [*self._close_range(edition["messages"]), *json.loads(self.record.tail)]
        messages: list[ReproducedMessage] = []
        for item in items:
            messages += self._decode_item(item, len(messages))
        self.index = None
        tools = [tool for index in edition["tools"] for tool in self._load_json(index, [])]
        options: Json = {} if edition["options"] is None else self._load_json(edition["options"], {})
        is_verified, mismatch = self._verify([one.fields for one in messages], tools, options)
        return PromptReproduction(
            **{one.name: getattr(self.record, one.name) for one in fields(PromptRecord)},
            messages=[{**one.fields, "sources": list(one.sources)} for one in messages],
            tools=tools,
            options=options,
            gaps=self.gaps,
            is_verified=is_verified,
            mismatch=mismatch,
            log=list(map(self._preview, account_for_lines(self.record, self.sources, items, edition["filtered"]))),
        )

    def _preview(self, one: LogRange) -> LogRange:
        """Return the range with previews of its messages, unless they were sent as they are."""
        places = range(one.first, one.last + 1) if one.status != "sent" else ()
        lines = [self.sources.lines[place] for place in places if place in self.sources.lines]
        previews = [
            LinePreview(position=line.position, role=line.message.role, text=_cut_preview(line.message.content))
            for line in lines
        ]
        return replace(one, messages=previews)

    def _load_edition(self) -> Json:
        stored = self.sources.texts.get(self.record.edition_id)
        if stored is None:
            self.gaps.append(PromptGap(0, GONE_EDITION))
            return {"messages": [], "tools": [], "options": None, "filtered": []}
        return json.loads(stored.content)

    def _close_range(self, items: Sequence[Any]) -> list[Any]:
        if items and isinstance(items[-1], list) and self.record.view_last is not None:
            return [*items[:-1], [items[-1][0], self.record.view_last]]
        return list(items)

    def _decode_item(self, item: Any, index: int) -> Iterator[ReproducedMessage]:
        """Yield the messages of one item: an object is one message, a list a range of stored messages."""
        self.index = index
        if isinstance(item, dict):
            yield self._decode_message(cast("Json", item))
            return
        for position in range(item[0], item[1] + 1):
            line = self.sources.lines.get(position)
            if line is None or line.message.is_notice:
                continue
            message, block = line.message, ""
            sources = [f"message {position}"]
            if message.role == "user" and self._had_block(position):
                block, source = self._decode_block("memory", position)
                sources.insert(0, source)
            text = block + message.content
            fields = to_openai_message(ChatMessage(message.role, text, message.calls, message.tool_call_id))
            self._note_forgotten(line)
            yield ReproducedMessage(fields, tuple(sources))
            self.index += 1

    def _decode_message(self, item: Json) -> ReproducedMessage:
        texts, sources = list[str](), list[str]()
        for segment in item["text"]:
            text, source = self._decode_segment(segment)
            texts.append(text)
            sources += [source] if source else []
        calls = self._decode_calls(item["calls"]) if "calls" in item else ()
        if isinstance(item.get("calls"), int) and (caller := f"message {item['calls']}") not in sources:
            sources.append(caller)
        parts = tuple(self._load_json(item["parts"], [])) if "parts" in item else ()
        speaker = self.sources.lines.get(item["named"]) if item.get("named") is not None else None
        name = guard_name(speaker.message.name) if speaker and speaker.message.name else None
        message = ChatMessage(item["role"], "".join(texts), calls, item.get("id"), parts=parts, name=name)
        fields = to_openai_message(message)
        return ReproducedMessage(fields, tuple(sources))

    def _decode_segment(self, segment: Any) -> tuple[str, str | None]:
        """Return the text of a part of a message, and its source; None for a constant."""
        match segment:
            case str():
                return segment, None
            case int():
                return self._decode_line(segment), f"message {segment}"
            case {"block": [kind, position]}:
                return self._decode_block(kind, position)
            case {"context": part}:
                return self._decode_context(part), f"context {self.record.bundle_id}"
            case {"entry": entry_id}:
                return self._decode_entry(UUID(entry_id))
            case _:
                text, source = self._load_text(segment["kept"])
                place = segment.get("lines") or segment.get("summary")
                return text, f"{source} {place[0]} to {place[1]}" if place else source

    def _decode_line(self, position: int) -> str:
        line = self.sources.lines.get(position)
        if line is None:
            return self._mark_erased(GONE_TEXT)
        self._note_forgotten(line)
        return line.message.content

    def _decode_entry(self, entry_id: UUID) -> tuple[str, str]:
        entry = self.sources.entries.get(entry_id)
        if entry is None:
            return self._mark_erased(GONE_ENTRY), f"summary {entry_id}"
        if entry.text == FORGOTTEN:
            self._add_gap(GONE_ENTRY)
        return entry.text, f"summary {entry_id} of messages {entry.first} to {entry.last}"

    def _had_block(self, position: int) -> bool:
        """Return whether text from memory was sent before a message. If such a text was erased, there is no salt."""
        text = self.sources.blocks.get(("memory", position))
        return text is not None and (text != FORGOTTEN_BLOCK or self.record.salt is None)

    def _decode_block(self, kind: BlockKind, position: int) -> tuple[str, str]:
        """Return the text of a system message or the text from memory before an input, and its source."""
        text = self.sources.blocks.get((kind, position), FORGOTTEN_BLOCK)
        source = f"{'system message' if kind == 'system' else 'memory block'} of message {position}"
        return self._mark_erased(GONE_CONTEXT) if text == FORGOTTEN_BLOCK else text, source

    def _decode_context(self, part: int) -> str:
        text = self.sources.contexts.get(self.record.bundle_id) if self.record.bundle_id else None
        if text is None:
            return self._mark_erased(GONE_CONTEXT)
        return text[self.record.stable_chars :] if part == RECALLED else text[: self.record.stable_chars]

    def _decode_calls(self, value: Any) -> tuple[ToolCall, ...]:
        if isinstance(value, int):
            line = self.sources.lines.get(value)
            return line.message.calls if line else ()
        return tuple(ToolCall(**call) for call in self._load_json(value["kept"], []))

    def _load_text(self, index: int) -> tuple[str, str]:
        stored = self._find_text(index)
        if stored is None:
            return self._mark_erased(GONE_TEXT), "a text that is stored no longer"
        if not stored.is_exact:
            self.inexact.add("a secret was removed before it was stored")
        return stored.content, TEXT_SOURCES.get(stored.kind, stored.kind)

    def _load_json(self, index: int, default: Any) -> Any:
        stored = self._find_text(index)
        if stored is None:
            self._add_gap(GONE_TEXT)
            return default
        if not stored.is_exact:
            self.inexact.add("a secret was removed before it was stored")
        try:
            return json.loads(stored.content)
        except ValueError:  # a secret that was removed may have contained a quotation mark
            self._add_gap("a text with a removed secret that is no JSON")
            return default

    def _find_text(self, index: int) -> Any:
        return self.sources.texts.get(self.record.text_ids[index])

    def _note_forgotten(self, line: StoredMessage) -> None:
        message = line.message
        is_call_forgotten = any(call.name == "forgotten" and call.arguments == "{}" for call in message.calls)
        if message.content == FORGOTTEN or is_call_forgotten:
            self._add_gap(f"message {line.position} was forgotten")

    def _mark_erased(self, what: str) -> str:
        self._add_gap(what)
        return ERASED.format(what)

    def _add_gap(self, reason: str) -> None:
        gap = PromptGap(self.index, reason)
        if gap not in self.gaps:
            self.gaps.append(gap)

    def _verify(
        self, messages: Sequence[Json], tools: Sequence[Json], options: Mapping[str, object]
    ) -> tuple[bool, str | None]:
        """Return whether the request is the one that was sent, and if not, why."""
        record = self.record
        causes = [*(gap.reason for gap in self.gaps), *sorted(self.inexact)]
        if record.salt is None:
            causes = causes or ["a message of the conversation was forgotten"]
            note = "the hash was withdrawn with the erased text, so that the text cannot be guessed from it"
            return False, f"{'; '.join(dict.fromkeys(causes))}; {note}"
        found = hash_request(
            record.salt,
            model=record.model,
            messages=messages,
            tools=tools,
            options=options,
            max_tokens=record.max_tokens,
        )
        if found == record.hash:
            return True, None
        return False, "; ".join(dict.fromkeys(causes)) or "stored data was changed outside of Newton"


TEXT_SOURCES: Mapping[str, str] = {
    "fixed": "Newton's system prompt or a header",
    "instructions": "the caller's system message",
    "cut": "shortened, messages",
    "injected": "messages of another session",
    "own": "the reply before a tool call",
    "block": "a system message or a memory block that was not sent again",
}


def _cut_preview(text: str) -> str:
    line = one_line(text[: 2 * MAX_PREVIEW_CHARS])
    return line if len(line) <= MAX_PREVIEW_CHARS else f"{line[: MAX_PREVIEW_CHARS - 2]} …"


def account_for_lines(
    record: StoredPrompt, sources: PromptSources, items: Sequence[Any], filtered: Sequence[Sequence[int]]
) -> Iterator[LogRange]:
    """Yield the messages up to the last one that a prompt shows, as ranges that say whether the prompt had them."""
    status = _status_by_position(sources, items)
    dropped = {place for first, last in filtered for place in range(first, last + 1)}
    end = max([record.input_position, *status], default=-1)
    previous: LogRange | None = None
    for position in sorted(place for place in sources.lines if place <= end):
        one = status.get(position)
        if one is None:
            is_notice = sources.lines[position].message.is_notice
            name: LineStatus = "notice" if is_notice else "filtered" if position in dropped else "over the window"
            name = "later" if position > record.input_position else name
            one = LogRange(position, position, name)
        if previous and previous.continues(one):
            previous = replace(previous, last=position)
            continue
        if previous:
            yield previous
        previous = replace(one, first=position, last=position)
    if previous:
        yield previous


def _status_by_position(sources: PromptSources, items: Sequence[Any]) -> dict[int, LogRange]:
    """Return what became of the messages of the log that a prompt shows, by position."""
    status: dict[int, LogRange] = {}
    for item in items:
        if isinstance(item, list):
            first, last = cast("list[int]", item)
            places = [place for place in range(first, last + 1) if place in sources.lines]
            sent = [place for place in places if not sources.lines[place].message.is_notice]
            status |= {place: LogRange(place, place, "sent") for place in sent}
            continue
        is_cut = isinstance(item.get("calls"), dict)
        for segment in item["text"]:
            status |= _account_for_segment(segment, sources, is_cut=is_cut)
        if isinstance(calls := item.get("calls"), int):
            status[calls] = LogRange(calls, calls, "sent")
    return status


def _account_for_segment(segment: Any, sources: PromptSources, *, is_cut: bool) -> dict[int, LogRange]:
    """Return which stored messages a part of a text shows, by position. `is_cut`: its calls were shortened."""
    match segment:
        case int():
            return {segment: LogRange(segment, segment, "shortened" if is_cut else "sent")}
        case {"kept": _, "summary": [first, last]}:
            one = LogRange(0, 0, "summarized", detail="for this turn only")
        case {"kept": _, "lines": [first, last]}:
            one = LogRange(0, 0, "shortened")
        case {"entry": entry_id} if entry := sources.entries.get(UUID(entry_id)):
            first, last, detail = entry.first, entry.last, f"{entry.strategy}, by {entry.model or 'rules'}"
            kind: LineStatus = "shortened" if entry.kind == "mask" else "summarized"
            one = LogRange(0, 0, kind, entry.entry_id, detail)
        case _:
            return {}
    return dict.fromkeys(range(first, last + 1), one)
