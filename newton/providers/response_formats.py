"""How an endpoint is asked for a form: in the strictest way that it understands, which a process learns once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from openai.types.chat.completion_create_params import ResponseFormat
from pydantic import BaseModel

from newton.providers.chat import ChatMessage

FormatMode = Literal["schema", "object", "words"]
EndpointKey = tuple[str, str]  # an address and a model

FORMAT_MODES: tuple[FormatMode, ...] = get_args(FormatMode)
# What servers answer to a way that they do not know. With 404 and 500 it may also be that nothing works.
REFUSAL_STATUSES = frozenset({400, 404, 422, 500, 501})
SCHEMA_INSTRUCTION = "\n\nAnswer with one JSON object that looks like this, and nothing else:\n"
MAX_DEPTH = 12
_TYPE_EXAMPLES = {
    "string": '"..."',
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "object": "{...}",
}

_known_modes: dict[EndpointKey, FormatMode] = {}
_unavailable: set[EndpointKey] = set()


def modes_to_try(endpoint: EndpointKey) -> tuple[FormatMode, ...]:
    """The ways to try there, the strictest first: from the one on that was understood before, or words alone where
    nothing was answered the last time."""
    return (
        ("words",)
        if endpoint in _unavailable
        else FORMAT_MODES[FORMAT_MODES.index(_known_modes.get(endpoint, "schema")) :]
    )


def record_success(endpoint: EndpointKey, mode: FormatMode) -> None:
    """It began to answer what it was asked in that way. After an outage all ways are open again."""
    if endpoint in _unavailable:
        _unavailable.discard(endpoint)
        _known_modes.pop(endpoint, None)
    else:
        _known_modes[endpoint] = mode


def record_outage(endpoint: EndpointKey) -> None:
    """It answered in no way, so the form is not what it lacks: until it answers, it is asked in one way only."""
    _unavailable.add(endpoint)


def build_response_format(output_type: type[BaseModel], mode: FormatMode) -> ResponseFormat | None:
    """What the request says of the form; None in words."""
    if mode == "schema":
        schema = output_type.model_json_schema()
        return {"type": "json_schema", "json_schema": {"name": output_type.__name__.lower(), "schema": schema}}
    return {"type": "json_object"} if mode == "object" else None


def add_schema_to_prompt(
    messages: Sequence[ChatMessage], output_type: type[BaseModel], mode: FormatMode
) -> list[ChatMessage]:
    """The messages, the last with the form in words where the request cannot carry it."""
    if mode == "schema":
        return list(messages)
    schema = output_type.model_json_schema()
    shape = _render_example(schema, schema.get("$defs", {}), depth=MAX_DEPTH)
    return [*messages[:-1], replace(messages[-1], text=messages[-1].text + SCHEMA_INSTRUCTION + shape)]


def _render_example(schema: Mapping[str, Any], defs: Mapping[str, Any], *, depth: int) -> str:
    """How JSON of a schema looks. Small models fill what looks like the answer, but give a schema back as it is."""
    if depth == 0:
        return "..."
    if "$ref" in schema:
        return _render_example(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, depth=depth - 1)
    if several := schema.get("anyOf") or schema.get("enum"):
        return " or ".join(
            _render_example(one, defs, depth=depth) if "anyOf" in schema else json.dumps(one, ensure_ascii=False)
            for one in several
        )
    if "properties" in schema:
        fields = schema["properties"].items()
        return "{" + ", ".join(f'"{name}": {_render_example(one, defs, depth=depth - 1)}' for name, one in fields) + "}"
    if "items" in schema:
        return f"[{_render_example(schema['items'], defs, depth=depth - 1)}, ...]"
    return _TYPE_EXAMPLES.get(schema.get("type", ""), json.dumps(schema.get("const", "...")))
