"""Types of pydantic fields that check and clean texts, names and times by the rules of `newton.memory.hygiene`."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from newton.errors import InputError
from newton.memory import hygiene

T = TypeVar("T")

_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")


def build_validator(rule: Callable[[T], T]) -> AfterValidator:
    """Return a pydantic validator that applies `rule` to a field and reports its InputError as a validation error."""

    def apply(value: T) -> T:
        try:
            return rule(value)
        except InputError as error:
            raise PydanticCustomError("refused", "{what}", {"what": error.what.rstrip(".")}) from None

    return AfterValidator(apply)


def _clean_message(text: str) -> str:
    return text and hygiene.clean_text(text, what="text", max_chars=hygiene.MAX_MESSAGE_CHARACTERS)


def _check_strategy(text: str) -> str:
    presets = import_module("newton.dialogue.compaction.presets")  # it loads slowly, and few inputs have a strategy
    try:
        presets.parse_request_preset(text)
    except InputError as error:  # the hint names the strategies, and a validation error has only one text
        raise InputError(f"{error.what} {error.hint}", hint=error.hint) from None
    return text


def _require_time(value: object) -> object:
    """Return the value if it is a text that begins with a date such as 2023-05-08; otherwise raise a validation error.

    Without this check, pydantic would accept a number as seconds since 1970.
    """
    if not (isinstance(value, str) and _DATED.match(value)):
        raise PydanticCustomError("time", "must be a time such as 2023-05-08T13:56:00Z")
    return value


Name = Annotated[str, build_validator(partial(hygiene.clean_name, what="text"))]
Ref = Annotated[str, build_validator(partial(hygiene.clean_ref, what="text"))]
CleanText = Annotated[str, build_validator(partial(hygiene.clean_text, what="text"))]
MessageContent = Annotated[str, build_validator(_clean_message)]
Timestamp = Annotated[
    datetime, Field(strict=False), BeforeValidator(_require_time), build_validator(hygiene.validate_time)
]
Strategy = Annotated[str, Field(max_length=500), build_validator(_check_strategy)]
Importance = Annotated[float, Field(ge=0, le=10)]
