"""JSON schemas without references, unions with null and titles, which models and their programs read best."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

Schema = dict[str, Any]
REFERENCE = "#/$defs/"


def to_plain_schema(schema: Mapping[str, Any]) -> Schema:
    """Return the schema of a model with its definitions inserted where they are used.

    A field that may be null is described by the type of its other values, because it can be left out.

    >>> to_plain_schema({"title": "A", "properties": {"x": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}],
    ...     "default": None}}, "$defs": {"B": {"type": "string", "title": "B"}}})
    {'properties': {'x': {'type': 'string'}}}
    """
    definitions = cast("Mapping[str, Schema]", schema.get("$defs", {}))
    return _simplify({key: value for key, value in schema.items() if key != "$defs"}, definitions)


def _simplify(node: Any, definitions: Mapping[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_simplify(one, definitions) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    found = _resolve(_merge_union(_resolve(cast("Schema", node), definitions)), definitions)
    return {key: _simplify(value, definitions) for key, value in found.items() if not _is_title(key, value)}


def _resolve(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    reference = node.get("$ref")
    if reference is None:
        return node
    return {**definitions[reference.removeprefix(REFERENCE)], **{k: v for k, v in node.items() if k != "$ref"}}


def _merge_union(node: Schema) -> Schema:
    """Return the schema without null in its union; a union of one type becomes this type."""
    union = cast("Sequence[Schema]", node.get("anyOf", ()))
    options = [one for one in union if one.get("type") != "null"]
    if len(options) == len(union):
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf" and (key, value) != ("default", None)}
    return {**options[0], **rest} if len(options) == 1 else {"anyOf": options, **rest}


def _is_title(key: str, value: object) -> bool:
    return key == "title" and isinstance(value, str)
