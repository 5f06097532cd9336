"""How an endpoint is asked for a form: in the strictest way that it understands, which a process learns once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from openai.types.chat.completion_create_params import ResponseFormat
from pydantic import BaseModel

from newton.providers.chat import ChatMessage

Way = Literal["schema", "object", "words"]
Place = tuple[str, str]  # an address and a model

WAYS: tuple[Way, ...] = get_args(Way)
# What servers answer to a way that they do not know. With 404 and 500 it may also be that nothing works.
REFUSALS = frozenset({400, 404, 422, 500, 501})
ASKED = "\n\nAnswer with one JSON object that looks like this, and nothing else:\n"
MOST_DEPTH = 12
_SHAPES = {
    "string": '"..."',
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
    "object": "{...}",
}

_learnt: dict[Place, Way] = {}
_away: set[Place] = set()


def ways(place: Place) -> tuple[Way, ...]:
    """The ways to try there, the strictest first: from the one on that was understood before, or words alone where
    nothing was answered the last time."""
    return ("words",) if place in _away else WAYS[WAYS.index(_learnt.get(place, "schema")) :]


def understood(place: Place, way: Way) -> None:
    """It began to answer what it was asked in that way. After an outage all ways are open again."""
    if place in _away:
        _away.discard(place)
        _learnt.pop(place, None)
    else:
        _learnt[place] = way


def unanswered(place: Place) -> None:
    """It answered in no way, so the form is not what it lacks: until it answers, it is asked in one way only."""
    _away.add(place)


def response_format(form: type[BaseModel], way: Way) -> ResponseFormat | None:
    """What the request says of the form; None in words."""
    if way == "schema":
        schema = form.model_json_schema()
        return {"type": "json_schema", "json_schema": {"name": form.__name__.lower(), "schema": schema}}
    return {"type": "json_object"} if way == "object" else None


def worded(messages: Sequence[ChatMessage], form: type[BaseModel], way: Way) -> list[ChatMessage]:
    """The messages, the last with the form in words where the request cannot carry it."""
    if way == "schema":
        return list(messages)
    schema = form.model_json_schema()
    shape = _shape(schema, schema.get("$defs", {}), depth=MOST_DEPTH)
    return [*messages[:-1], replace(messages[-1], text=messages[-1].text + ASKED + shape)]


def _shape(schema: Mapping[str, Any], defs: Mapping[str, Any], *, depth: int) -> str:
    """How JSON of a schema looks. Small models fill what looks like the answer, but give a schema back as it is."""
    if depth == 0:
        return "..."
    if "$ref" in schema:
        return _shape(defs[schema["$ref"].rsplit("/", 1)[-1]], defs, depth=depth - 1)
    if several := schema.get("anyOf") or schema.get("enum"):
        return " or ".join(
            _shape(one, defs, depth=depth) if "anyOf" in schema else json.dumps(one, ensure_ascii=False)
            for one in several
        )
    if "properties" in schema:
        fields = schema["properties"].items()
        return "{" + ", ".join(f'"{name}": {_shape(one, defs, depth=depth - 1)}' for name, one in fields) + "}"
    if "items" in schema:
        return f"[{_shape(schema['items'], defs, depth=depth - 1)}, ...]"
    return _SHAPES.get(schema.get("type", ""), json.dumps(schema.get("const", "...")))
