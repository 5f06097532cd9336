"""Answers of a fixed shape: the endpoint gets the form as JSON Schema, and what comes is checked before it is used."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from newton.providers.chat import ChatMessage, Reply

F = TypeVar("F", bound=BaseModel)

MOST_PLACES = 20
_DECODER = json.JSONDecoder(strict=False)  # models write line breaks into strings


class FormModel(Protocol):
    """A ChatModel that can be held to a form."""

    @property
    def name(self) -> str:
        """As ChatModel says."""
        ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, form: type[BaseModel] | None = None
    ) -> AsyncIterator[str | Reply]:
        """As ChatModel says; with a form the endpoint is asked for JSON of that shape."""
        ...


def filled(text: str, form: type[F]) -> F | None:
    """The form that a model gave as text, or None when it does not fit. Some wrap it in words or in a fence: the first
    object in them that has a field of the form is it."""
    start, end = text.find("{"), text.rfind("}")
    whole = text[start : end + 1] if 0 <= start < end else text
    for found in (whole, *(one for one in _objects(text) if set(one) & set(form.model_fields))):
        try:
            return form.model_validate_json(found if isinstance(found, str) else json.dumps(found))
        except ValidationError:
            continue
    return None


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The objects in a text, of the first few places where one may begin.

    >>> list(_objects('As {you} like: ```json\\n{"same": true}\\n``` {}'))
    [{'same': True}, {}]
    """
    start = text.find("{")
    for _ in range(MOST_PLACES):
        if start < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, start)
            yield found
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)
