"""Repetition of a request with a rejected field: under another name of the field, or without it."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

import openai

from newton.providers.structured_output import EndpointKey

Fields: TypeAlias = Mapping[str, object]
T = TypeVar("T")

# The other name of a field; None for a field that Newton adds and can do without.
SUBSTITUTES: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    "stream_options": None,
}
_REFUSALS = (openai.BadRequestError, openai.UnprocessableEntityError)

_learned: dict[EndpointKey, dict[str, str | None]] = {}  # the refused fields by model, as learned by this process


async def send_accepted_fields(send: Callable[[Fields], Awaitable[T]], fields: Fields, *, endpoint: EndpointKey) -> T:
    """Return the result of `send`; if the server rejects a field, call it again with a substitute for the field.

    What the server accepted is remembered for its next requests. Raises the first rejection if the second request is
    rejected too.
    """
    fields = _substitute(fields, _learned.get(endpoint, {}))
    try:
        return await send(fields)
    except _REFUSALS as error:
        if (refused := _find_refused_field(error, fields)) is None:
            raise
        refusal = error
    substitute = {refused: SUBSTITUTES[refused]}
    second_fields = _substitute(fields, substitute)
    try:
        result = await send(second_fields)
    except _REFUSALS as error:
        raise refusal if _find_refused_field(error, second_fields) else error from None
    kept = {name: value for name, value in _learned.get(endpoint, {}).items() if value != refused}
    _learned[endpoint] = {**kept, **substitute}
    return result


def _substitute(fields: Fields, substitutes: Mapping[str, str | None]) -> Fields:
    renamed = {substitutes.get(name, name): value for name, value in fields.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def _find_refused_field(error: openai.APIStatusError, fields: Fields) -> str | None:
    """Return the field that the error names, if it has a substitute; else None."""
    names = [name for name in SUBSTITUTES if name in fields]
    named = [name for name in names if error.param == name or re.search(rf"\b{name}\b", error.message)]
    return named[0] if named else None
