"""Parsing of model answers by a pydantic schema, item by item: only invalid items are left out. Pure."""

import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ValidationError

from newton.providers.model_output.lenient_json import find_json_values

F = TypeVar("F", bound=BaseModel)
Schema = Mapping[str, Any]

MAX_WRAPPERS = 4  # objects, lists and texts around the answer, such as the arguments of a tool call
UNSURE = "unsure"  # of an enumeration: it stands for an answer that is none of the values
CUT_OFF, TOO_MANY, UNUSABLE = "cut off", "too many", "not usable"
_THOUGHTS = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_AROUND_WORD = re.compile(r"^[\W\d_]+|[\W_]+$")  # such as a number or asterisks


class ParsedOutput(NamedTuple, Generic[F]):
    """The valid part of an answer (None if nothing is usable), and how many parts are left out, by field and reason."""

    value: F | None
    left_out: Mapping[str, int]


class InvalidPartError(ValueError):
    """A part of an answer that does not match its schema. The text is the reason."""


def parse_output(text: str, schema: type[F]) -> ParsedOutput[F]:
    """Return the part of a model's answer that is valid for a schema.

    If the text has several JSON values, the one with the most valid items counts. Left out are items that are not
    valid, optional fields that are not valid, and items beyond the maximum length of a list.
    """
    best, most_items = ParsedOutput[F](None, {UNUSABLE: 1}), -1
    for fields, is_cut in _list_candidates(strip_thoughts(text), schema):
        reader = _SchemaReader(_get_json_schema(schema))
        try:
            value = schema.model_validate(reader.read(fields))
        except (InvalidPartError, ValidationError):
            continue
        left_out = {**reader.left_out, **({CUT_OFF: 1} if is_cut else {})}
        if (items := _count_items(value)) > most_items and (items or not left_out):
            best, most_items = ParsedOutput(value, left_out), items
    return best


def strip_thoughts(text: str) -> str:
    """Return an answer without the thoughts with which a reasoning model begins it."""
    return _THOUGHTS.sub("", text)


@functools.cache
def _get_json_schema(schema: type[BaseModel]) -> Schema:
    return schema.model_json_schema()


def _list_candidates(text: str, schema: type[BaseModel]) -> Iterator[tuple[object, bool]]:
    """Yield the JSON values in a text that may be the answer, each with whether the end of the text cuts it."""
    text = _decode_text(text)
    names = {name.lower() for name in schema.model_fields}
    others: list[object] = []
    is_cut = is_json = False
    for value, is_value_cut in find_json_values(text):
        is_json, is_cut = True, is_cut or is_value_cut
        if (answer := _unwrap(value, names)) is not None:
            yield answer, is_value_cut
        elif isinstance(value, list):
            others += cast("list[object]", value)
        else:
            others.append(value)
    if others:
        yield others, is_cut
        yield others[0], is_cut
    if not is_json and text:
        yield text, False


def _decode_text(text: str) -> str:
    """Return the text in a JSON text, which may be encoded twice; another text without the spaces around it."""
    for _ in range(2):
        try:
            decoded = json.loads(text)
        except (ValueError, RecursionError):
            break
        text = decoded if isinstance(decoded, str) else text if decoded is not None else ""
    return text.strip()


def _unwrap(value: object, names: set[str], wrappers: int = MAX_WRAPPERS) -> dict[str, object] | None:
    """Return the first object in a value, the value itself included, that has one of these fields; else None."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if any(name.lower() in names for name in fields):
            return fields
        inner = list(fields.values())
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    elif isinstance(value, str) and value.lstrip().startswith("{"):
        inner = [found.value for found in find_json_values(value)]
    else:
        return None
    found = (_unwrap(one, names, wrappers - 1) for one in inner if wrappers)
    return next((one for one in found if one is not None), None)


def _count_items(value: BaseModel) -> int:
    """Return the number of fields with a value, of a list the number of its items."""
    fields = value.model_dump(exclude_defaults=True).values()
    return sum(len(cast("list[object]", one)) if isinstance(one, list) else 1 for one in fields)


@dataclass(slots=True)
class _SchemaReader:
    """Converts a value, as a model wrote it, to what a JSON Schema asks for, and counts what it leaves out."""

    root: Schema
    left_out: Counter[str] = field(default_factory=Counter[str])

    def read(self, value: object) -> object:
        """Return the valid part of an answer. Raises InvalidPartError if a required field is missing or invalid."""
        return self._read_object(value, self.root, "")

    def _read(self, value: object, schema: Schema, place: str) -> object:
        """Return the valid part of a value at `place` in the answer.

        Raises InvalidPartError if nothing of it is valid.
        """
        schema = self._resolve(schema)
        if "anyOf" in schema:
            (option,) = [one for one in schema["anyOf"] if one.get("type") != "null"]
            return self._read(value, option, place)
        if "enum" in schema:
            return self._read_choice(value, schema["enum"], place)
        match schema.get("type"):
            case "object":
                return self._read_object(value, schema, f"{place}.")
            case "array":
                return self._read_list(value, schema, place)
            case "string":
                return _read_text(value, schema)
            case _:
                return value

    def _resolve(self, schema: Schema) -> Schema:
        return self.root["$defs"][schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema

    def _read_object(self, value: object, schema: Schema, prefix: str) -> dict[str, object]:
        """Return the valid fields of an object. Raises InvalidPartError if a required one is missing or invalid."""
        required: Sequence[str] = schema.get("required", ())
        fields = self._to_fields(value, schema["properties"], required)
        result: dict[str, object] = {}
        for name, inner in schema["properties"].items():
            if (given := fields.get(name)) is None or given == "":
                continue
            try:
                result[name] = self._read(given, inner, prefix + name)
            except InvalidPartError as error:
                if name in required:
                    raise
                self.left_out[f"{prefix}{name}: {error}"] += 1
        if any(name not in result for name in required) or not fields.keys() & schema["properties"].keys():
            raise InvalidPartError("incomplete")
        return result

    def _to_fields(self, value: object, properties: Schema, required: Sequence[str]) -> dict[str, object]:
        """Return the fields of an object, with names in lower case. Raises InvalidPartError if it is no object.

        A text is taken as the only required field, or the only one. If the only one is a text, so is an object with one
        field of another name. A list is taken as the field that accepts the most of its items.
        """
        if isinstance(value, dict):
            fields = {name.lower(): one for name, one in cast("dict[str, object]", value).items()}
            if len(fields) != 1 or [one.get("type") for one in properties.values()] != ["string"]:
                return fields
            (value,) = fields.values()
        if isinstance(value, list):
            return self._to_list_field(cast("list[object]", value), properties)
        (only, *others) = required or tuple(properties)
        if others or not isinstance(value, str | int | float):
            raise InvalidPartError("no object")
        return {only: value}

    def _to_list_field(self, items: list[object], properties: Schema) -> dict[str, object]:
        counts = Counter[str]()
        for name, schema in properties.items():
            if schema.get("type") == "array":
                read = _SchemaReader(self.root)._read_list(items, schema, name)
                counts[name] = sum(item != UNSURE for item in read)
        (name, most), *others = [*counts.most_common(2), ("", 0)]
        if not most or others[0][1] == most:
            raise InvalidPartError("no object")
        return {name: items}

    def _read_list(self, value: object, schema: Schema, place: str) -> list[object]:
        items: list[object] = []
        for item in _to_items(value, self._resolve(schema["items"])):
            try:
                items.append(self._read(item, schema["items"], place))
            except InvalidPartError as error:
                self.left_out[f"{place}: {error}"] += 1
        if len(items) < schema.get("minItems", 0):
            raise InvalidPartError("empty")
        limit = schema.get("maxItems", len(items))
        if len(items) > limit:
            self.left_out[f"{place}: {TOO_MANY}"] += len(items) - limit
        return items[:limit]

    def _read_choice(self, value: object, choices: Sequence[str], place: str) -> str:
        """Return the value of an enumeration. Capitals, and characters around the word, do not count."""
        given = list(cast("dict[str, object]", value).values()) if isinstance(value, dict) else [value]
        words = {_AROUND_WORD.sub("", one).lower() for one in given if isinstance(one, str)}
        found = [choice for choice in choices if choice.lower() in words]
        if len(found) == 1:
            return found[0]
        if UNSURE not in choices:
            raise InvalidPartError("unknown value")
        self.left_out[f"{place}: unknown value"] += 1
        return UNSURE


def _to_items(value: object, item_schema: Schema) -> list[object]:
    """Return the items of a list. Raises InvalidPartError if the value is none.

    An object is taken as the only item, as a wrapper of the list, or as all items by number, from 0 or 1. The lines of
    a text are items, or the words of one that lists values of an enumeration.
    """
    match value:
        case list():
            return cast("list[object]", value)
        case dict():
            fields = cast("dict[str, object]", value)
            if any(name.lower() in item_schema.get("properties", {}) for name in fields):
                return [fields]
            lists = [cast("list[object]", one) for one in fields.values() if isinstance(one, list)]
            if len(lists) == 1:
                return lists[0]
            numbered = {int(name): one for name, one in fields.items() if name.isdecimal()}
            numbers = sorted(numbered)
            if numbers not in (list(range(len(fields))), list(range(1, len(fields) + 1))):
                raise InvalidPartError("no list")
            return [numbered[number] for number in numbers]
        case str():
            pattern = r"[\n,;]" if "enum" in item_schema else r"\n"
            return [part for part in re.split(pattern, value) if part.strip()]
        case _:
            raise InvalidPartError("no list")


def _read_text(value: object, schema: Schema) -> str:
    if isinstance(value, dict) and len(cast("dict[str, object]", value)) == 1:
        (value,) = cast("dict[str, object]", value).values()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidPartError("no text")
    text = str(value).strip()
    if len(text) < schema.get("minLength", 0):
        raise InvalidPartError("empty")
    if len(text) > (limit := schema.get("maxLength", len(text))):
        raise InvalidPartError(f"longer than {limit} characters")
    return text
