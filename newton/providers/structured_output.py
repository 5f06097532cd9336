"""Structured output: the endpoint receives a JSON Schema, and the reply is validated."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from newton.providers.chat import ChatMessage, ChatReply

F = TypeVar("F", bound=BaseModel)

MAX_STARTS = 20
_DECODER = json.JSONDecoder(strict=False)  # models emit raw line breaks in strings


class StructuredModel(Protocol):
    """A ChatModel with structured output."""

    @property
    def name(self) -> str:
        """See `ChatModel.name`."""
        ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """Stream as `ChatModel.stream`; with a schema the endpoint is asked for matching JSON."""
        ...


def parse_output(text: str, schema: type[F]) -> F | None:
    """Return the model's reply as the schema, or None when it does not fit. Prose or a code fence around the object is
    ignored; the first object with a field of the schema is used."""
    start, end = text.find("{"), text.rfind("}")
    whole = text[start : end + 1] if 0 <= start < end else text
    for found in (whole, *(one for one in _iter_json_objects(text) if set(one) & set(schema.model_fields))):
        try:
            return schema.model_validate_json(found if isinstance(found, str) else json.dumps(found))
        except ValidationError:
            continue
    return None


def _iter_json_objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the JSON objects in a text, from the first few possible starts.

    >>> list(_iter_json_objects('As {you} like: ```json\\n{"same": true}\\n``` {}'))
    [{'same': True}, {}]
    """
    start = text.find("{")
    for _ in range(MAX_STARTS):
        if start < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, start)
            yield found
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
