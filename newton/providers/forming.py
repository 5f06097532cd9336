"""How an endpoint is asked for a form: in the strictest way that it understands, which a process learns once."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

from openai.types.chat.completion_create_params import ResponseFormat
from pydantic import BaseModel

from newton.providers.chat import ChatMessage

Way = Literal["schema", "object", "words"]
Place = tuple[str, str]  # an address and a model

WAYS: tuple[Way, ...] = get_args(Way)
# What servers answer to a way that they do not know. With 404 and 500 it may also be that nothing works.
REFUSALS = frozenset({400, 404, 422, 500, 501})
ASKED = "\n\nAnswer with one JSON object and nothing else. It has to fit this JSON Schema:\n"

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
    schema = json.dumps(_plain(form.model_json_schema()), ensure_ascii=False)
    return [*messages[:-1], replace(messages[-1], text=messages[-1].text + ASKED + schema)]


def _plain(schema: object) -> object:
    """Without the titles that every field has, which say nothing that its name does not."""
    if isinstance(schema, list):
        return [_plain(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, object]", schema)
    return {k: _plain(part) for k, part in given.items() if not (k == "title" and isinstance(part, str))}
