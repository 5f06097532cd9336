"""Types of pydantic fields that check text and times by the rules of `newton.memory.hygiene`."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from newton.errors import InputError
from newton.memory import hygiene

T = TypeVar("T")

_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")


def _check_name(text: str) -> str:
    return _as_validation_error(lambda: hygiene.clean_name(text, what="text"))


def _check_ref(text: str) -> str:
    return _as_validation_error(lambda: hygiene.clean_ref(text, what="text"))


def _check_text(text: str) -> str:
    return _as_validation_error(lambda: hygiene.clean_text(text, what="text"))


def _check_message(text: str) -> str:
    return (
        _as_validation_error(lambda: hygiene.clean_text(text, what="text", max_chars=hygiene.MAX_MESSAGE_CHARACTERS))
        if text
        else text
    )


def _require_timestamp(value: object) -> object:
    """Reject numbers and digit-only text, which pydantic reads as seconds since 1970."""
    if not (isinstance(value, str) and _DATED.match(value)):
        raise PydanticCustomError("time", "must be a time such as 2023-05-08T13:56:00Z")
    return value


def _check_moment(value: datetime) -> datetime:
    return _as_validation_error(lambda: hygiene.validate_time(value))


def _as_validation_error(rule: Callable[[], T]) -> T:
    """Return what `rule` returns; turn its InputError into a pydantic error, which names the field."""
    try:
        return rule()
    except InputError as error:
        raise PydanticCustomError("refused", "{what}", {"what": error.what.rstrip(".")}) from None


Name = Annotated[str, AfterValidator(_check_name)]
Ref = Annotated[str, AfterValidator(_check_ref)]
CleanText = Annotated[str, AfterValidator(_check_text)]
MessageContent = Annotated[str, AfterValidator(_check_message)]
Timestamp = Annotated[datetime, Field(strict=False), BeforeValidator(_require_timestamp), AfterValidator(_check_moment)]
Importance = Annotated[float, Field(ge=0, le=10)]
