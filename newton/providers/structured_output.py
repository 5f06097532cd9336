"""Answers of a fixed shape: the endpoint gets the form as JSON Schema, and what comes is checked before it is used."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from newton.providers.chat import ChatMessage, ChatReply

F = TypeVar("F", bound=BaseModel)

MAX_STARTS = 20
_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings


class StructuredModel(Protocol):
    """A ChatModel that can be held to a form."""

    @property
    def name(self) -> str:
        """As ChatModel says."""
        ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """As ChatModel says; with a form the endpoint is asked for JSON of that shape."""
        ...


def parse_output(text: str, schema: type[F]) -> F | None:
    """The form that a model gave as text, or None when it does not fit. Some wrap it in words or in a fence: the first
    object in them that has a field of the form is it."""
    start, end = text.find("{"), text.rfind("}")
    whole = text[start : end + 1] if 0 <= start < end else text
    for found in (whole, *(one for one in _iter_json_objects(text) if set(one) & set(schema.model_fields))):
        try:
            return schema.model_validate_json(found if isinstance(found, str) else json.dumps(found))
        except ValidationError:
            continue
    return None


def _iter_json_objects(text: str) -> Iterator[dict[str, object]]:
    """The objects in a text, of the first few places where one may begin.

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
