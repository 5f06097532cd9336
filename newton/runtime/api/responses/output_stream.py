"""The output items of a response while it is generated, and the events that announce each change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from newton.providers.chat import ReplyDelta, ToolCall
from newton.runtime.api.responses.request_models import ItemKind, format_item_id

ItemStatus = Literal["completed", "incomplete"]
ResponseEvent = dict[str, Any]  # without its sequence number

REASONING_FIELDS = ("reasoning_content", "reasoning")  # names differ by server


class _PartForm(NamedTuple):
    """The names of fields and events for one type of content part."""

    text_field: str = "text"
    list_field: str = "content"
    index_field: str = "content_index"
    part_event: str = "content_part"
    text_event: str = ""


TEXT, REFUSAL, REASONING, SUMMARY = "output_text", "refusal", "reasoning_text", "summary_text"
_FORMS = {
    TEXT: _PartForm(),
    REFUSAL: _PartForm(text_field="refusal"),
    REASONING: _PartForm(),
    SUMMARY: _PartForm(
        list_field="summary",
        index_field="summary_index",
        part_event="reasoning_summary_part",
        text_event="reasoning_summary_text",
    ),
}


@dataclass(slots=True)
class _OpenItem:
    """An output item that is not complete: its fields, its index in the output, and the index of each part by type."""

    fields: dict[str, Any]
    output_index: int
    parts: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class OutputStream:
    """The output items (message, reasoning, tool calls) of one response. Its methods yield the events for a client.

    With `summarizes_reasoning`, the reasoning of the model is sent as a summary.
    """

    response_id: UUID
    summarizes_reasoning: bool = False
    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _message: _OpenItem | None = None
    _reasoning: _OpenItem | None = None
    _reasoning_count: int = 0

    def add_text(self, text: str) -> Iterator[ResponseEvent]:
        """Append a piece of the reply, and yield its events."""
        yield from self._close_reasoning("completed")
        yield from self._open_message()
        yield from self._extend(self._message, TEXT, text)

    def add_delta(self, delta: ReplyDelta) -> Iterator[ResponseEvent]:
        """Append reasoning, a refusal or log probabilities, and yield the events; ignore other deltas."""
        reasoning = next((text for name in REASONING_FIELDS if (text := _text_of(delta.delta, name))), "")
        if reasoning:
            yield from self._open_reasoning()
            yield from self._extend(self._reasoning, SUMMARY if self.summarizes_reasoning else REASONING, reasoning)
        if refusal := _text_of(delta.delta, "refusal"):
            yield from self._close_reasoning("completed")
            yield from self._open_message()
            yield from self._extend(self._message, REFUSAL, refusal)
        if self._message and TEXT in self._message.parts and delta.logprobs:
            part = self._message.fields["content"][self._message.parts[TEXT]]
            part["logprobs"] += _to_logprobs(delta.logprobs.get("content"))

    def finish(self, calls: Sequence[ToolCall], status: ItemStatus) -> Iterator[ResponseEvent]:
        """End the open items with the status, add the tool calls as items, and yield the events."""
        yield from self._close_reasoning(status)
        yield from self._close_message(status)
        for number, call in enumerate(calls):
            yield from self._add_call(call, format_item_id("fc", self.response_id, number))

    def _open_message(self) -> Iterator[ResponseEvent]:
        if self._message is None:
            fields: dict[str, Any] = {"type": "message", "role": "assistant", "status": "in_progress", "content": []}
            self._message = self._begin("msg", fields, number=0)
            yield self._added(self._message)

    def _open_reasoning(self) -> Iterator[ResponseEvent]:
        if self._reasoning is None:
            fields: dict[str, Any] = {"type": "reasoning", "status": "in_progress", "summary": [], "content": []}
            self._reasoning = self._begin("rs", fields, number=self._reasoning_count)
            self._reasoning_count += 1
            yield self._added(self._reasoning)

    def _begin(self, kind: ItemKind, fields: dict[str, Any], *, number: int) -> _OpenItem:
        item = _OpenItem({"id": format_item_id(kind, self.response_id, number), **fields}, len(self.items))
        self.items.append(item.fields)
        return item

    def _added(self, item: _OpenItem) -> ResponseEvent:
        empty: dict[str, Any] = {name: [] for name in ("content", "summary") if name in item.fields}
        begun = {**item.fields, **empty}
        return {"type": "response.output_item.added", "output_index": item.output_index, "item": begun}

    def _extend(self, item: _OpenItem | None, kind: str, text: str) -> Iterator[ResponseEvent]:
        assert item, "the item is open"
        form = _FORMS[kind]
        parts = item.fields[form.list_field]
        if kind not in item.parts:
            item.parts[kind] = len(parts)
            parts.append(_empty_part(kind))
            yield _part_event(f"response.{form.part_event}.added", item, kind, part=_empty_part(kind))
        parts[item.parts[kind]][form.text_field] += text
        more: dict[str, Any] = {"logprobs": []} if kind == TEXT else {}
        yield _part_event(f"response.{form.text_event or kind}.delta", item, kind, delta=text, **more)

    def _close_reasoning(self, status: ItemStatus) -> Iterator[ResponseEvent]:
        item, self._reasoning = self._reasoning, None
        yield from self._close(item, status)

    def _close_message(self, status: ItemStatus) -> Iterator[ResponseEvent]:
        item, self._message = self._message, None
        yield from self._close(item, status)

    def _close(self, item: _OpenItem | None, status: ItemStatus) -> Iterator[ResponseEvent]:
        if item is None:
            return
        for kind, index in item.parts.items():
            form = _FORMS[kind]
            part = item.fields[form.list_field][index]
            done = {name: part[name] for name in (form.text_field, "logprobs") if name in part}
            yield _part_event(f"response.{form.text_event or kind}.done", item, kind, **done)
            yield _part_event(f"response.{form.part_event}.done", item, kind, part=dict(part))
        item.fields["status"] = status
        yield {"type": "response.output_item.done", "output_index": item.output_index, "item": item.fields}

    def _add_call(self, call: ToolCall, item_id: str) -> Iterator[ResponseEvent]:
        item, index = build_call_item(call, item_id), len(self.items)
        self.items.append(item)
        begun = {**item, "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        place = {"item_id": item_id, "output_index": index}
        yield {"type": "response.function_call_arguments.delta", **place, "delta": call.arguments}
        done = {"name": call.name, "arguments": call.arguments}
        yield {"type": "response.function_call_arguments.done", **place, **done}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def build_call_item(call: ToolCall, item_id: str) -> dict[str, Any]:
    """Return a tool call as a completed output item."""
    fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
    return {"id": item_id, "type": "function_call", "status": "completed", **fields}


def build_message_item(text: str, item_id: str, status: ItemStatus) -> dict[str, Any]:
    """Return the text of a reply as an output item."""
    content = [{**_empty_part(TEXT), "text": text}]
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


def _empty_part(kind: str) -> dict[str, Any]:
    more: dict[str, Any] = {"annotations": [], "logprobs": []} if kind == TEXT else {}
    return {"type": kind, _FORMS[kind].text_field: "", **more}


def _part_event(event_type: str, item: _OpenItem, kind: str, **fields: object) -> ResponseEvent:
    place = {
        "item_id": item.fields["id"],
        "output_index": item.output_index,
        _FORMS[kind].index_field: item.parts[kind],
    }
    return {"type": event_type, **place, **fields}


def _text_of(delta: Mapping[str, object], name: str) -> str:
    value = delta.get(name)
    return value if isinstance(value, str) else ""


def _to_logprobs(tokens: object) -> list[dict[str, Any]]:
    """Return log probabilities in the form of the Responses API, in which all fields are required."""
    listed = cast("list[Any]", tokens) if isinstance(tokens, list) else []
    return [
        {**one, "bytes": one.get("bytes") or [], "top_logprobs": _to_logprobs(one.get("top_logprobs"))}
        if "top_logprobs" in one
        else {**one, "bytes": one.get("bytes") or []}
        for one in listed
    ]
