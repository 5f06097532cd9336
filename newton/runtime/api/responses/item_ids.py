"""Ids of responses and of their output items. The id of an item is derived from the id of its response."""

import re
from typing import Literal, NamedTuple
from uuid import UUID

from newton.errors import InputError

ItemKind = Literal["msg", "fc", "rs"]  # message, function call, reasoning

_RESPONSE_ID = re.compile("resp_([0-9a-f]{32})")
_ITEM_ID = re.compile("(msg|fc|rs)_([0-9a-f]{32})([0-9a-f]{4})")


class ItemPlace(NamedTuple):
    """The place of an output item: the kind of item, its response, and its number among the items of this kind."""

    kind: str
    response_id: UUID
    number: int


def format_response_id(response_id: UUID) -> str:
    return f"resp_{response_id.hex}"


def parse_response_id(text: str) -> UUID | None:
    """Return the UUID in the id of a response; None if the text is not such an id."""
    match = _RESPONSE_ID.fullmatch(text)
    return UUID(match[1]) if match else None


def format_item_id(kind: ItemKind, response_id: UUID, number: int) -> str:
    """Return the id of an output item.

    >>> format_item_id("fc", UUID(int=10), 1)
    'fc_0000000000000000000000000000000a0001'
    """
    return f"{kind}_{response_id.hex}{number:04x}"


def parse_item_id(text: str, *, param: str) -> ItemPlace:
    """Return the place of the output item with this id. Raises InputError if the text is not such an id."""
    match = _ITEM_ID.fullmatch(text)
    if match is None:
        what = f"There is no item {text[:80]!r}."
        raise InputError(what, hint="Send the item itself in place of a reference to it.", param=param)
    return ItemPlace(match[1], UUID(match[2]), int(match[3], 16))
