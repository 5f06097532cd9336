"""Checks of the tools that a server describes, and of what they return: schemas, sizes and texts for the model."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from newton.agent.actions.external_tools import EXPECTED_FIELD, ExternalResult, ExternalTool
from newton.memory.hygiene import clean_model_text, remove_prompt_marks, remove_template_marks
from newton.memory.memory import digest
from newton.providers.chat import ToolDefinition

MAX_OUTPUT_CHARS = 10_000  # of one result; of a longer one, the model gets the beginning and the end


def to_result(result: Any) -> ExternalResult:
    """Return a result of the MCP client as text. Images and other data are replaced by a description."""
    parts = [_describe_block(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False)]
    text = "\n".join(part for part in parts if part)
    whole_text = text if len(text) > MAX_OUTPUT_CHARS else None
    return ExternalResult(cut_output(text), result.is_error is True, whole_text)


def cut_output(text: str, max_chars: int = MAX_OUTPUT_CHARS) -> str:
    """Return a text without secrets and marks of chat templates, its middle left out if it is longer than `max_chars`.

    >>> cut_output("a" * 30 + "b" * 30, 20)
    'aaaaaaaaaa\\n[… 40 characters are left out …]\\nbbbbbbbbbb'
    """
    head, tail = text[: max_chars // 2], text[-(max_chars // 2) :]
    if len(text) <= max_chars:
        return _clean(text) or "(no output)"
    note = f"[… {len(text) - len(head) - len(tail):,} characters are left out …]"
    return f"{_clean(head)}\n{note}\n{_clean(tail)}"


def _clean(text: str) -> str:
    return remove_template_marks(clean_model_text(text))


def _describe_block(block: Any) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case "resource_link":
            return f"[resource {block.name}: {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return text if text is not None else f"[resource {block.resource.uri}]"
        case _:
            return f"[{block.type}]"


NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
ARGUMENT_PATTERN = re.compile(r"[A-Za-z0-9_.$-]{1,64}")
MAX_FULL_NAME = 64  # characters, the limit of most model servers
MAX_DESCRIPTION_CHARS, MAX_SCHEMA_CHARS, MAX_DEPTH = 2_000, 12_000, 12
MAX_TOOLS = 64  # of one server
DESCRIPTION_KEYS = frozenset({"title", "description", "$comment"})
EXPECTED_SCHEMA = {"type": "string", "description": "What you expect to happen, in one sentence."}


class ListedTool(NamedTuple):
    """A tool as its MCP server lists it. `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None


def check_tool(tool: ListedTool, *, server: str, address: str, is_trusted: bool) -> ExternalTool | str:
    """Return a listed tool in the form for a model, or the reason why it cannot be used.

    `address`, a text on how the server is reached, becomes a part of the tool's fingerprint. If the server
    `is_trusted`, the tools that it marks as reading may be called without asking.
    """
    if not NAME_PATTERN.fullmatch(tool.name):
        return "its name has other characters than letters, digits, and . _ / -"
    full_name = f"{server}__{re.sub(r'[./]', '_', tool.name)}"
    if len(full_name) > MAX_FULL_NAME:
        return f"its name, with that of the server, has more than {MAX_FULL_NAME} characters"
    if problem := find_schema_problem(tool.schema):
        return problem
    is_read = tool.annotations.get("readOnlyHint") is True
    schema_json = json.dumps(tool.schema, sort_keys=True)
    parts = (server, address, tool.name, tool.description, schema_json, json.dumps(tool.annotations, sort_keys=True))
    required = cast("list[str]", tool.schema.get("required", []))
    return ExternalTool(
        server=server,
        name=tool.name,
        description=_clean_description(tool.description),
        definition=ToolDefinition(full_name, _to_function(tool, full_name, server, is_read=is_read)),
        required=frozenset(required),
        fingerprint=digest(*parts),
        is_read=is_read,
        is_trusted=is_trusted,
        is_destructive=not is_read and tool.annotations.get("destructiveHint") is not False,
    )


def find_schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why the JSON schema of a tool's arguments cannot be used; None if it can."""
    if _measure(schema) > MAX_SCHEMA_CHARS:
        return f"its schema has more than {MAX_SCHEMA_CHARS:,} characters, or is not JSON"
    if schema.get("type") != "object":
        return "its schema is not that of an object"
    if not _is_local(schema, MAX_DEPTH):
        return f"its schema refers to other documents, or is nested more than {MAX_DEPTH} times"
    return _find_argument_problem(schema.get("properties", {}), schema.get("required", []))


def _measure(schema: Mapping[str, Any]) -> float:
    try:
        return len(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return math.inf


def _find_argument_problem(properties: object, required: object) -> str | None:
    """Return what is wrong with the described and the required arguments of a schema; None if nothing is."""
    described = cast("dict[str, object]", properties) if isinstance(properties, dict) else None
    if described is None or not all(isinstance(one, dict | bool) for one in described.values()):
        return "the properties of its schema are not an object of schemas"
    if not all(ARGUMENT_PATTERN.fullmatch(name) for name in described):
        return "its schema has an argument whose name has other characters than letters, digits, and . _ $ -"
    if EXPECTED_FIELD in described:
        return f"its schema has an argument {EXPECTED_FIELD!r}, which Newton adds itself"
    names = cast("list[object]", required) if isinstance(required, list) else None
    if names is None or not all(isinstance(one, str) and one in described for one in names):
        return "its schema requires arguments that it does not describe"
    return None


def _is_local(value: object, depth: int) -> bool:
    """Return whether a schema is not too deep, and all its references stay within itself."""
    if not isinstance(value, dict | list):
        return True
    if depth == 0:
        return False
    if isinstance(value, list):
        return all(_is_local(one, depth - 1) for one in cast("list[object]", value))
    fields = cast("dict[str, object]", value)
    references = [fields.get(name) for name in ("$ref", "$dynamicRef")]
    if any(isinstance(one, str) and not one.startswith("#") for one in references):
        return False
    return all(_is_local(one, depth - 1) for one in fields.values())


def _to_function(tool: ListedTool, full_name: str, server: str, *, is_read: bool) -> dict[str, object]:
    """Return the definition of a tool for a model. A tool that acts gets an argument for what the model expects."""
    schema = cast("dict[str, Any]", _clean_texts(tool.schema))
    parameters = {key: value for key, value in schema.items() if key not in ("title", "$schema")}
    if not is_read:
        parameters["properties"] = {**parameters.get("properties", {}), EXPECTED_FIELD: EXPECTED_SCHEMA}
    text = f"Tool of the server {server}. {_clean_description(tool.description)}".strip()
    return {"name": full_name, "description": text, "parameters": parameters}


def _clean_description(text: str) -> str:
    """Return the beginning of a description, without secrets and without marks that look like those of a prompt."""
    return remove_prompt_marks(clean_model_text(text[: 2 * MAX_DESCRIPTION_CHARS]))[:MAX_DESCRIPTION_CHARS]


def _clean_texts(schema: object) -> object:
    """Return a schema with clean descriptions, at any depth. What says which arguments are valid stays as it is."""
    if isinstance(schema, list):
        return [_clean_texts(one) for one in cast("list[object]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: _clean_description(value) if key in DESCRIPTION_KEYS and isinstance(value, str) else _clean_texts(value)
        for key, value in cast("Mapping[str, object]", schema).items()
    }


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
