"""The check of the structured output of a tool against the schema that its server lists. Pure.

The schema is text of the server. A pattern or a schema that refers to itself could take hours to check, so only schemas
without these are used: their cost grows with the size of the output alone.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from newton.runtime.mcp_servers.tool_checks import MAX_DEPTH, MAX_SCHEMA_CHARS

SIMPLE_KEYWORDS = frozenset(
    (
        *("type", "properties", "required", "items", "additionalProperties", "enum", "const", "minimum", "maximum"),
        *("minLength", "maxLength", "minItems", "maxItems", "title", "description", "default", "examples", "$schema"),
    )
)
MAX_PROBLEM_CHARS = 300


def find_output_problem(output: object, schema: Mapping[str, Any] | None) -> str | None:
    """Return how a structured output differs from its schema; None if it does not, or the schema cannot be checked."""
    if schema is None or not _is_simple(schema, MAX_DEPTH) or len(json.dumps(schema)) > MAX_SCHEMA_CHARS:
        return None
    if output is None:
        return "it has an output schema, but returned no structured content"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return "its output schema is invalid"
    error = next(iter(cast("Any", Draft202012Validator(schema)).iter_errors(output)), None)
    return None if error is None else f"invalid structured content: {error.message[:MAX_PROBLEM_CHARS]}"


def _is_simple(schema: object, depth: int) -> bool:
    """Return whether a schema has only simple keywords, at most `depth` levels deep."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or depth == 0:
        return False
    fields = cast("dict[str, object]", schema)
    properties = fields.get("properties", {})
    inner = [fields.get("items", True), fields.get("additionalProperties", True)]
    if not isinstance(properties, dict) or not fields.keys() <= SIMPLE_KEYWORDS:
        return False
    inner += cast("dict[str, object]", properties).values()
    return all(_is_simple(one, depth - 1) for one in inner)
