"""Structured output: requests for JSON in the strictest format that an endpoint supports.

There are three formats (modes): `schema` sends a JSON Schema, `object` asks for any JSON object, `words` only adds an
example to the prompt.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from pydantic import BaseModel

from newton.providers.chat import ChatMessage, ChatModel, ChatReply

if TYPE_CHECKING:
    # its import takes longer than most commands
    from openai.types.chat.completion_create_params import ResponseFormat

FormatMode = Literal["schema", "object", "words"]


class EndpointKey(NamedTuple):
    """Identifies a model at a server.

    Two upstreams (servers in the settings) differ even if their addresses are equal.
    """

    upstream: str
    address: str
    model: str


FORMAT_MODES: tuple[FormatMode, ...] = get_args(FormatMode)
# Response statuses for an unsupported mode. 404 and 500 may also mean an outage.
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
    """Return the formats of structured output to try, the strictest first, from the last one that worked.

    After an outage it is only `words`, which adds an example to the prompt.
    """
    first = "words" if endpoint in _unavailable else _known_modes.get(endpoint, "schema")
    return FORMAT_MODES[FORMAT_MODES.index(first) :]


def record_success(endpoint: EndpointKey, mode: FormatMode) -> None:
    """Record that the endpoint supports a format of structured output.

    After an outage, all are tried again from now on.
    """
    if endpoint in _unavailable:
        _unavailable.discard(endpoint)
        _known_modes.pop(endpoint, None)
    else:
        _known_modes[endpoint] = mode


def record_outage(endpoint: EndpointKey) -> None:
    """Record that the endpoint rejected all formats of structured output.

    Until `words` (an example in the prompt) succeeds, no other format is tried.
    """
    _unavailable.add(endpoint)


def build_response_format(output_type: type[BaseModel], mode: FormatMode) -> "ResponseFormat | None":
    """Return the field `response_format` of the request; None for the format `words`, which needs none."""
    if mode == "schema":
        schema = output_type.model_json_schema()
        return {"type": "json_schema", "json_schema": {"name": output_type.__name__.lower(), "schema": schema}}
    return {"type": "json_object"} if mode == "object" else None


def add_schema_to_prompt(
    messages: Sequence[ChatMessage], output_type: type[BaseModel], mode: FormatMode
) -> list[ChatMessage]:
    """Return the messages, with an example of the JSON to return at the end of the last one.

    In the format `schema` they are returned unchanged, because the server gets the schema itself.
    """
    if mode == "schema":
        return list(messages)
    schema = output_type.model_json_schema()
    shape = _render_example(schema, schema.get("$defs", {}), depth=MAX_DEPTH)
    return [*messages[:-1], replace(messages[-1], text=messages[-1].text + SCHEMA_INSTRUCTION + shape)]


def _render_example(schema: Mapping[str, Any], defs: Mapping[str, Any], *, depth: int) -> str:
    """Return example JSON for a schema. Small models imitate an example, but repeat a schema."""
    if depth == 0:
        return "..."
    if "$ref" in schema:
        return _render_example(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, depth=depth - 1)
    options = [_render_example(option, defs, depth=depth) for option in schema.get("anyOf", ())]
    if options := options or [json.dumps(value, ensure_ascii=False) for value in schema.get("enum", ())]:
        return " or ".join(options)
    if "properties" in schema:
        fields = schema["properties"].items()
        return "{" + ", ".join(f'"{name}": {_render_example(one, defs, depth=depth - 1)}' for name, one in fields) + "}"
    if "items" in schema:
        return f"[{_render_example(schema['items'], defs, depth=depth - 1)}, ...]"
    return _TYPE_EXAMPLES.get(schema.get("type", ""), json.dumps(schema.get("const", "...")))


class StructuredModel(ChatModel, Protocol):
    """Interface of a chat model that supports structured output."""

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """Stream a reply, as `ChatModel.stream`. With a schema, the model is asked for JSON that matches it."""
        ...
