"""The schema of the model's answer to a reconciliation, and a tolerant parser of such answers. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from newton.heart.reconciliation.reconciling_types import SHOWN_OPERATIONS, ProposedItem, ReadAnswer
from newton.memory.hygiene import clean_model_text
from newton.memory.representations import one_line
from newton.providers.model_output.lenient_json import find_json_values
from newton.providers.model_output.output_parser import strip_thoughts

MAX_ITEMS = 200  # of one answer; a model that repeats itself gives more
MAX_FIELD_CHARACTERS = 2_000
MAX_WRAPPERS = 4  # objects and lists around the items, such as the arguments of a tool call

_TEXT = {"type": "string"}
_FIELDS: Mapping[str, Any] = {
    "line": {"type": "integer"},
    "op": {"type": "string", "enum": list(SHOWN_OPERATIONS)},
    "ids": {"type": "array", "items": _TEXT},
    "text": _TEXT,
    "subject": _TEXT,
    "when": _TEXT,
}
# Flat, because some servers refuse references. Most fields of most items are empty, so that they are optional.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["items"],
    "additionalProperties": False,
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["line", "op"],
                "properties": _FIELDS,
            },
        }
    },
}


class ReconcilingOutput(BaseModel):
    """The schema of the answer that the model is asked for. `read_answer` also parses answers that do not match it."""

    items: list[dict[str, Any]] = []

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(SCHEMA)


def read_answer(text: str) -> ReadAnswer:
    """Return the items in a model's answer, whatever the text is.

    The JSON may be within prose or a fence, cut off, or a bare list. The value with the most items counts.
    """
    best = ReadAnswer(items=(), is_readable=False)
    for found in find_json_values(strip_thoughts(text)):
        for values in _find_item_lists(found.value, MAX_WRAPPERS):
            items = [item for item in map(_read_item, values[:MAX_ITEMS]) if item is not None]
            answer = ReadAnswer(
                items=tuple(items),
                is_readable=bool(items) or not (values or found.is_cut),
                malformed=len(values) - len(items),
                is_cut=found.is_cut,
            )
            if (len(items), answer.is_readable) > (len(best.items), best.is_readable):
                best = answer
    return best


def _find_item_lists(value: object, depth: int) -> Iterator[Sequence[object]]:
    """Yield each list in a value that may be the list of items, and an item alone as a list."""
    if value == [] or (_is_object(value) and value.get("items") == []):
        yield []
    elif _is_list(value) and any(map(_is_item, value)):
        yield value
    elif _is_item(value):
        yield [value]
    elif depth:
        for inner in _list_inner_values(value):
            if inner != []:
                yield from _find_item_lists(inner, depth - 1)


def _list_inner_values(value: object) -> list[object]:
    if _is_object(value):
        return list(value.values())
    if _is_list(value):
        return value
    is_json = isinstance(value, str) and value.lstrip().startswith(("{", "["))
    return [found.value for found in find_json_values(str(value))] if is_json else []


def _is_item(value: object) -> bool:
    return _is_object(value) and isinstance(value.get("op"), str)


def _is_object(value: object) -> TypeGuard[dict[object, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _read_item(value: object) -> ProposedItem | None:
    """Return an item from its JSON; None if the operation or the number of its line is missing."""
    if not _is_object(value):
        return None
    fields = {str(name).lower(): one for name, one in value.items()}
    line = _read_integer(fields.get("line"))
    op = _read_text(fields.get("op")).lower()
    if line is None or not op:
        return None
    texts = {name: _read_text(fields.get(name)) for name in ("text", "subject", "when")}
    return ProposedItem(line=line, op=op, ids=_read_ids(fields.get("ids", fields.get("id"))), **texts)


def _read_integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    digits = value.strip() if isinstance(value, str) else ""
    if digits.isascii() and digits.isdigit() and len(digits) <= 6:
        return int(digits)
    return value if isinstance(value, int) else None


def _read_ids(value: object) -> tuple[str, ...]:
    given = value if _is_list(value) else [value]
    words = (word for one in given if isinstance(one, str) for word in one.replace(",", " ").split())
    labels = (word.strip("[]()\"'.;:").upper() for word in words)
    return tuple(dict.fromkeys(label for label in labels if label))


def _read_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return one_line(clean_model_text(str(value)))[:MAX_FIELD_CHARACTERS]
