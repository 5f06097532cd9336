"""Functions that narrow a value of parsed JSON to an object, a list or a text."""

from typing import Any, cast

JsonObject = dict[str, Any]


def as_object(value: object) -> JsonObject:
    """Return the value if it is a JSON object, else an empty object."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the value if it is a text, else ""."""
    return value if isinstance(value, str) else ""
