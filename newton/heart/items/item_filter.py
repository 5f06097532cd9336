"""Filters of items by the fields of their JSON values, and patterns of namespaces. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

from newton.errors import InputError
from newton.heart.items.item_value import JsonObject

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
