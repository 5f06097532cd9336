"""Merge of the deltas of a streamed reply into one message."""

from collections.abc import Mapping
from typing import Any, cast

CONSTANT_FIELDS = frozenset({"role", "type", "id", "index", "format", "name"})  # repeated, not continued


def merge_delta(target: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to the message `target`: append texts, merge objects, and merge lists by `index` or extend them.

    >>> message = {"reasoning": "First"}
    >>> merge_delta(message, {"reasoning": ", count.", "role": "assistant"})
    >>> message
    {'reasoning': 'First, count.', 'role': 'assistant'}
    """
    for name, value in delta.items():
        known = target.get(name)
        if isinstance(known, str) and isinstance(value, str) and name not in CONSTANT_FIELDS:
            target[name] = known + value
        elif isinstance(known, dict) and isinstance(value, Mapping):
            merge_delta(cast("dict[str, Any]", known), cast("Mapping[str, Any]", value))
        elif isinstance(value, list):
            target[name] = _merge_list(cast("list[Any]", known or []), cast("list[Any]", value))
        elif value is not None or name not in target:
            target[name] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


def _merge_list(known: list[Any], added: list[Any]) -> list[Any]:
    merged = list(known)
    for item in added:
        index = cast("Mapping[str, Any]", item).get("index") if isinstance(item, Mapping) else None
        same = [one for one in merged if index is not None and one.get("index") == index]
        if same:
            merge_delta(same[0], cast("Mapping[str, Any]", item))
        else:
            merged.append(dict(cast("Mapping[str, Any]", item)) if isinstance(item, Mapping) else item)
    return merged
