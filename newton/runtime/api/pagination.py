"""Cursors: where a list goes on. Callers hand them back as they are; what is in them may change."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from newton.errors import InputError
from newton.runtime.api.schemas import CursorPage, Item

Row = TypeVar("Row")


def encode_cursor(position: str) -> str:
    """
    >>> decode_cursor(encode_cursor("42"))
    '42'
    """
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """The place that a cursor stands for. Raises InputError for what is no cursor."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _invalid_cursor_error() from None


def decode_id_cursor(cursor: str | None) -> UUID | None:
    """The id that a cursor stands for."""
    try:
        return None if cursor is None else UUID(decode_cursor(cursor))
    except ValueError:
        raise _invalid_cursor_error() from None


def decode_number_cursor(cursor: str | None) -> int:
    """The number that a cursor stands for; 0 for none."""
    place = "0" if cursor is None else decode_cursor(cursor)
    if not place.isdecimal() or len(place) > 9:
        raise _invalid_cursor_error()
    return int(place)


def build_page(
    rows: Sequence[Row], limit: int, to_item: Callable[[Row], Item], position: Callable[[Row], object]
) -> CursorPage[Item]:
    """A page of at most `limit` of the rows, which are one more than that when there is a next page."""
    shown = rows[:limit]
    more = len(rows) > limit
    return CursorPage(
        items=[to_item(row) for row in shown], next=encode_cursor(str(position(shown[-1]))) if more else None
    )


def _invalid_cursor_error() -> InputError:
    return InputError("The cursor is none of a list.", hint="Give `next` of a page as it was answered.")
