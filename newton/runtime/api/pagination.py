"""Opaque cursors of lists."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from newton.errors import InputError
from newton.runtime.api.base_models import CursorPage, Item

Row = TypeVar("Row")


def encode_cursor(position: str) -> str:
    """
    >>> decode_cursor(encode_cursor("42"))
    '42'
    """
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """Return the position of a cursor. Raises InputError for an invalid one."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _invalid_cursor_error() from None


def decode_id_cursor(cursor: str | None) -> UUID | None:
    """Return the id of a cursor; None without a cursor. Raises InputError for an invalid one."""
    try:
        return None if cursor is None else UUID(decode_cursor(cursor))
    except ValueError:
        raise _invalid_cursor_error() from None


def decode_number_cursor(cursor: str | None) -> int:
    """Return the number of a cursor; 0 without a cursor. Raises InputError for an invalid one."""
    digits = "0" if cursor is None else decode_cursor(cursor)
    if not digits.isdecimal() or len(digits) > 9:
        raise _invalid_cursor_error()
    return int(digits)


def build_page(
    rows: Sequence[Row], limit: int, to_item: Callable[[Row], Item], position: Callable[[Row], object]
) -> CursorPage[Item]:
    """Return a page of at most `limit` rows; `rows` has one more row when there is a next page."""
    page = rows[:limit]
    following = encode_cursor(str(position(page[-1]))) if len(rows) > limit else None
    return CursorPage(items=[to_item(row) for row in page], next=following)


def _invalid_cursor_error() -> InputError:
    return InputError("The cursor is invalid.", hint="Send the value of `next` from the previous page unchanged.")
