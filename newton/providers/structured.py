"""Answers of a fixed shape: the endpoint gets the form as JSON Schema, and what comes is checked before it is used."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from newton.providers.chat import ChatMessage, Reply

F = TypeVar("F", bound=BaseModel)


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
    """The form that a model gave as text, or None when it does not fit."""
    try:
        return form.model_validate_json(_json(text))
    except ValidationError:
        return None


def _json(text: str) -> str:
    """The object in the text: some servers wrap it in words or in a fence.

    >>> _json('Here you are: ```json\\n{"same": true}\\n```')
    '{"same": true}'
    """
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
