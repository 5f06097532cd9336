"""Plain messages for validation errors of Pydantic, in the terms of JSON. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from newton.content.yaml_files import did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

UNKNOWN_FIELD = "extra_forbidden"
# Messages by the type of an error; Pydantic's own name Python's types.
_MESSAGES = {
    UNKNOWN_FIELD: "There is no such field",
    "model_type": "Input should be an object",
    "model_attributes_type": "Input should be an object",
    "dict_type": "Input should be an object",
    "list_type": "Input should be a list",
    "tuple_type": "Input should be a list",
}


def select_problem(errors: "Sequence[ErrorDetails]") -> "ErrorDetails":
    """Return the error to report: the first one or, if that is a missing field, an unknown field beside it.

    The unknown field is often the missing one, misspelt.
    """
    first = errors[0]
    unknown = (one for one in errors if one["type"] == UNKNOWN_FIELD and one["loc"][:-1] == first["loc"][:-1])
    return next(unknown, first) if first["type"] == "missing" else first


def describe_problem(error: "ErrorDetails") -> str:
    """Return a clause that says what is wrong with a field, without a full stop.

    >>> describe_problem({"type": "too_short", "loc": (), "input": (), "ctx": {"field_type": "Tuple"},
    ...     "msg": "Tuple should have at least 1 item after validation, not 0"})
    'List should have at least 1 item, not 0'
    """
    message = _MESSAGES.get(error["type"], error["msg"])
    if error["type"] in ("too_short", "too_long"):
        message = message.replace("Tuple", "List", 1).replace(" after validation", "", 1)
    return message


def suggest_field(error: "ErrorDetails", model: type[BaseModel]) -> str:
    """Return the question "Did you mean ...?" for an unknown field of `model`; an empty string for any other error.

    An unknown field of an object within the model gets no suggestion.
    """
    if error["type"] != UNKNOWN_FIELD or len(error["loc"]) != 1:
        return ""
    return did_you_mean(str(error["loc"][0]), [field.alias or name for name, field in model.model_fields.items()])
