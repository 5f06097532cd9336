"""Translation of the events of Anthropic's Messages API into chunks of OpenAI's format."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

FINISH_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
REASONING_FIELD = "reasoning_content"
REASONING_EXTRA = "reasoning_blocks"  # in the extras of a call
REFUSAL_TEXT = "The model refuses to answer."

Event = Mapping[str, Any]
Chunk = dict[str, Any]


@dataclass(slots=True)
class EventTranslator:
    """Translates the events of one stream. Its state is the usage, the reasoning blocks and the tool calls so far."""

    _usage: dict[str, Any] = field(default_factory=dict[str, Any])
    _reasoning: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _calls: dict[int, int] = field(default_factory=dict[int, int])
    _open_block: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_chunk(self, event: object) -> Chunk:
        """Translate an event into a chunk; an event of no interest becomes an empty chunk.

        Raises ValueError for an invalid event.
        """
        try:
            return self._translate(cast("Event", event))  # a wrong type is an invalid event
        except (KeyError, TypeError, AttributeError):
            raise ValueError from None

    def _translate(self, event: Event) -> Chunk:
        match event["type"]:
            case "message_start":
                self._usage |= event["message"].get("usage") or {}
                return _to_chunk({}, usage=self._build_usage())
            case "content_block_start":
                return _to_chunk(self._start_block(event["index"], event["content_block"]))
            case "content_block_delta":
                return _to_chunk(self._add_delta(event["index"], event["delta"]))
            case "message_delta":
                return self._finish(event)
            case _:
                return _to_chunk({})

    def _start_block(self, index: int, block: Event) -> Chunk:
        match block["type"]:
            case "text":
                return {"content": block.get("text") or ""}
            case "thinking" | "redacted_thinking":
                self._open_block = dict(block)
                self._reasoning.append(self._open_block)
                return {REASONING_FIELD: block.get("thinking") or ""}
            case "tool_use":
                return self._start_call(index, block)
            case _:
                return {}

    def _start_call(self, index: int, block: Event) -> Chunk:
        number = self._calls[index] = len(self._calls)
        given = json.dumps(block["input"]) if block.get("input") else ""
        call = {"index": number, "id": block["id"], "function": {"name": block["name"], "arguments": given}}
        if self._reasoning:
            call["extra_content"] = {REASONING_EXTRA: self._reasoning}
            self._reasoning = []
        return {"tool_calls": [call]}

    def _add_delta(self, index: int, delta: Event) -> Chunk:
        match delta["type"]:
            case "text_delta":
                return {"content": delta["text"]}
            case "input_json_delta":
                return {"tool_calls": [{"index": self._calls[index], "function": {"arguments": delta["partial_json"]}}]}
            case "thinking_delta":
                self._open_block["thinking"] = self._open_block.get("thinking", "") + delta["thinking"]
                return {REASONING_FIELD: delta["thinking"]}
            case "signature_delta":
                self._open_block["signature"] = self._open_block.get("signature", "") + delta["signature"]
                return {}
            case _:
                return {}

    def _finish(self, event: Event) -> Chunk:
        usage: Event = event.get("usage") or {}
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        reason, delta = event["delta"].get("stop_reason"), Chunk()
        if reason == "refusal":
            details: Event = event["delta"].get("stop_details") or {}
            delta = {"refusal": details.get("explanation") or REFUSAL_TEXT}
        finish = FINISH_REASONS.get(reason, "stop") if reason else None
        return _to_chunk(delta, finish_reason=finish, usage=self._build_usage())

    def _build_usage(self) -> Chunk | None:
        """Return the usage in OpenAI's format, in which prompt tokens include cached ones; None if not reported yet."""
        usage = self._usage
        if "input_tokens" not in usage:
            return None
        read, written = (usage.get(f"cache_{kind}_input_tokens") or 0 for kind in ("read", "creation"))
        details = {"cached_tokens": read, "cache_creation_tokens": written} if read or written else None
        spent: Event = usage.get("output_tokens_details") or {}
        reasoning = spent.get("thinking_tokens")
        return {
            "prompt_tokens": usage["input_tokens"] + read + written,
            "completion_tokens": usage.get("output_tokens") or 0,
            "prompt_tokens_details": details,
            "completion_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
        }


def _to_chunk(delta: Chunk, *, finish_reason: str | None = None, usage: Chunk | None = None) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], "usage": usage}
