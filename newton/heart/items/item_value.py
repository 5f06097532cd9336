"""The namespace and value of an item: validation, plain text, and filters by the fields of JSON values. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from newton.errors import InputError
from newton.memory.hygiene import clean_ref, clean_text
from newton.memory.redaction.redactor import redact_secrets

JsonObject = Mapping[str, object]

MAX_NAMESPACE_PARTS = 10
MAX_NAMESPACE_CHARACTERS = 400  # of all parts together: namespace and key have to fit into one index entry
MAX_VALUE_CHARACTERS = 200_000  # of the value as JSON
MAX_VALUE_DEPTH = 32
MAX_FIELDS = 50  # field paths of one item

WILDCARD = "*"
WHOLE_VALUE = "$"

_FIELD_PATH = re.compile(
    r"(?:[^.\[\]{}*]+|\*)(?:\[(?:\*|-?\d{1,9})\])*(?:\.(?:[^.\[\]{}*]+|\*)(?:\[(?:\*|-?\d{1,9})\])*)*"
)
_FIELD_STEP = re.compile(r"\[(?P<index>[^\]]+)\]|(?P<name>[^.\[\]]+)")


class FieldText(NamedTuple):
    """A text, number or boolean in a JSON value, as text, with the path that leads to it."""

    path: str
    text: str
    is_string: bool


def clean_namespace(parts: Sequence[str]) -> tuple[str, ...]:
    """Validate the parts of a namespace, or of a prefix or suffix of one, and return them unchanged.

    Raises InputError if there are too many parts, if they are too long together, or if `clean_ref` rejects one of them.
    """
    if len(parts) > MAX_NAMESPACE_PARTS:
        hint = "Join some of the parts of the namespace."
        raise InputError(f"The namespace has {len(parts)} parts; the maximum is {MAX_NAMESPACE_PARTS}.", hint=hint)
    cleaned = tuple(clean_ref(part, what="part of the namespace") for part in parts)
    if (length := sum(map(len, cleaned))) > MAX_NAMESPACE_CHARACTERS:
        message = f"The namespace has {length} characters; the maximum is {MAX_NAMESPACE_CHARACTERS}."
        raise InputError(message, hint="Shorten the parts of the namespace.")
    return cleaned


def clean_value(value: JsonObject) -> JsonObject:
    """Return a JSON object with secrets redacted in its texts.

    Raises InputError if it is too deep or too long, or contains a text with a NUL byte or a lone surrogate, or a secret
    in the name of a field.
    """
    cleaned = cast("JsonObject", _clean(value, name="", depth=1))
    if (length := len(json.dumps(cleaned, ensure_ascii=False))) > MAX_VALUE_CHARACTERS:
        message = f"The value has {length:,} characters as JSON; the maximum is {MAX_VALUE_CHARACTERS:,}."
        raise InputError(message, hint="Split the value into several items.")
    return cleaned


def clean_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Validate and return the paths of the fields to index, such as `title`, `author.name`, `tags[*]` or `*.text`.

    Raises InputError for too many paths, and for an invalid one.
    """
    if len(fields) > MAX_FIELDS:
        raise InputError(
            f"There are {len(fields)} field paths to index; the maximum is {MAX_FIELDS}.", hint="Index fewer fields."
        )
    for field in fields:
        if field != WHOLE_VALUE and (len(field) > MAX_NAMESPACE_CHARACTERS or not _FIELD_PATH.fullmatch(field)):
            hint = "Write the path as title, author.name, tags[0], tags[*] or *.text; $ is the whole value."
            raise InputError(f"{field[:100]!r} is not the path of a field.", hint=hint)
    return tuple(fields)


def render_text(value: JsonObject, fields: Sequence[str] = (WHOLE_VALUE,)) -> str:
    r"""Return the plain text of a value, or of its `fields`: one line for each text, number and boolean.

    A line begins with the path of its field, except if the value has a single text.

    >>> render_text({"text": "Ana likes tea."}), render_text({"who": {"name": "Ana"}, "tags": ["tea", 2]})
    ('Ana likes tea.', 'who.name: Ana\ntags: tea\ntags: 2')
    """
    chosen = [found for field in fields for found in _select(value, field)]
    texts = list(dict.fromkeys(leaf for path, found in chosen for leaf in _iter_texts(path, found)))
    if len(texts) == 1 and texts[0].is_string:
        return texts[0].text
    return "\n".join(f"{leaf.path}: {leaf.text}" for leaf in texts)


def _clean(value: object, *, name: str, depth: int) -> object:
    if isinstance(value, str):
        return _clean_field(name, value)
    if not isinstance(value, Mapping | list):
        return value
    if depth > MAX_VALUE_DEPTH:
        message = f"The value is nested more than {MAX_VALUE_DEPTH} levels deep."
        raise InputError(message, hint="Flatten the value, or store the nested part as a text.")
    if isinstance(value, list):
        return [_clean(one, name=name, depth=depth + 1) for one in cast("list[object]", value)]
    fields = cast("JsonObject", value).items()
    return {_clean_name(key): _clean(one, name=key, depth=depth + 1) for key, one in fields}


def _clean_field(name: str, text: str) -> str:
    """Return a text with secrets redacted, including those that only the field's name, such as "password", reveals."""
    if not text.strip():
        return text
    cleaned = clean_text(text, what=f"field {name!r}")
    return redact_secrets(f"{name}: {cleaned}").removeprefix(f"{name}: ")


def _clean_name(name: str) -> str:
    if name.strip() and clean_text(name, what="name of a field") != name:
        hint = "Choose another name: secrets in names are not removed."
        raise InputError("The name of a field contains what looks like a secret.", hint=hint)
    return name


def _select(value: object, field: str) -> Iterator[tuple[str, object]]:
    """Yield pairs of path and value: each value that matches the pattern `field`, after the names that lead to it."""
    found: list[tuple[str, object]] = [("", value)]
    for step in _FIELD_STEP.finditer(field) if field != WHOLE_VALUE else ():
        found = [one for path, parent in found for one in _step(path, parent, step["name"], step["index"])]
    yield from found


def _step(path: str, parent: object, name: str | None, index: str | None) -> Iterator[tuple[str, object]]:
    if isinstance(parent, Mapping) and name is not None:
        fields = cast("Mapping[str, object]", parent)
        for key in fields if name == WILDCARD else [name]:
            if key in fields:
                yield _join_path(path, key), fields[key]
    elif isinstance(parent, list):
        elements = cast("list[object]", parent)
        if WILDCARD in (name, index):
            yield from ((path, one) for one in elements)
        elif index is not None and -len(elements) <= int(index) < len(elements):
            yield path, elements[int(index)]


def _iter_texts(path: str, value: object) -> Iterator[FieldText]:
    if isinstance(value, Mapping):
        for key, one in cast("Mapping[str, object]", value).items():
            yield from _iter_texts(_join_path(path, key), one)
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _iter_texts(path, one)
    elif isinstance(value, str):
        if value.strip():
            yield FieldText(path, value, is_string=True)
    elif value is not None:
        yield FieldText(path, json.dumps(value), is_string=False)


def _join_path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


MAX_CONDITIONS = 100

OPERATORS = {
    "$eq": "equal",
    "$ne": "unequal",
    "$gt": "greater",
    "$gte": "greater_or_equal",
    "$lt": "less",
    "$lte": "less_or_equal",
}


class FilterCondition(NamedTuple):
    """A condition on the value at `path`. The SQL function `heart.meets_conditions` performs the `test`."""

    path: tuple[str, ...]
    test: str
    operand: object


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePattern:
    """A page of the namespaces that begin with `prefix` and end with `suffix`; `*` stands for any one part.

    Of a longer namespace only the first `max_depth` parts are returned.
    """

    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


def flatten_filter(fields: JsonObject) -> list[FilterCondition]:
    """Return the conditions of a filter. An item must meet all of them.

    A plain value must equal that of the field. An object with names such as `$gt` compares by these operators; another
    object holds conditions on the fields that it names. Raises InputError for an unknown operator or too many
    conditions.

    >>> flatten_filter({"age": {"$gt": 3}})
    [FilterCondition(path=('age',), test='greater', operand=3)]
    """
    conditions = [condition for name, wanted in fields.items() for condition in _flatten((name,), wanted)]
    if len(conditions) > MAX_CONDITIONS:
        message = f"The filter has {len(conditions)} conditions; the maximum is {MAX_CONDITIONS}."
        raise InputError(message, hint="Filter by fewer fields.")
    return conditions


def _flatten(path: tuple[str, ...], wanted: object) -> Iterator[FilterCondition]:
    if not isinstance(wanted, Mapping):
        yield FilterCondition(path, "equal", wanted)
        return
    fields = cast("JsonObject", wanted)
    if not any(name.startswith("$") for name in fields):
        yield FilterCondition(path, "type", "object")
        for name, one in fields.items():
            yield from _flatten((*path, name), one)
        return
    for name, operand in fields.items():
        if name not in OPERATORS:
            raise InputError(f"Unknown filter operator {name[:100]!r}.", hint=f"Use one of {', '.join(OPERATORS)}.")
        yield FilterCondition(path, OPERATORS[name], operand)
