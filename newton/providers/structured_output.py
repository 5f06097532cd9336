"""Structured output: send a JSON Schema to the endpoint and validate the reply."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from newton.providers.chat import ChatMessage, ChatModel, ChatReply

F = TypeVar("F", bound=BaseModel)

MAX_STARTS = 20
_DECODER = json.JSONDecoder(strict=False)  # models emit raw line breaks in strings


class StructuredModel(ChatModel, Protocol):
    """A ChatModel with structured output."""

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """Stream as `ChatModel.stream`; with a schema, request JSON that matches it."""
        ...


def parse_output(text: str, schema: type[F]) -> F | None:
    """Return the first JSON object of a reply that is valid for the schema, or None. Text around it is ignored."""
    start, end = text.find("{"), text.rfind("}")
    whole = text[start : end + 1] if 0 <= start < end else text
    parts = (json.dumps(item) for item in _iter_json_objects(text) if item.keys() & schema.model_fields)
    for candidate in (whole, *parts):
        try:
            return schema.model_validate_json(candidate)
        except ValidationError:
            continue
    return None


def _iter_json_objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the JSON objects that start at one of the first MAX_STARTS braces of a text.

    >>> list(_iter_json_objects('As {you} like: ```json\\n{"same": true}\\n``` {}'))
    [{'same': True}, {}]
    """
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, start)
            yield value
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
