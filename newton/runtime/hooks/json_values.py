"""Narrow values of parsed JSON to objects, lists and texts. Pure."""

from typing import Any, cast

JsonObject = dict[str, Any]


def as_object(value: object) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
