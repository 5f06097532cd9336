"""Pages of lists, and the encoding of their cursors."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from newton.operations.cursors import decode_cursor, encode_cursor, invalid_cursor_error
from newton.operations.results import CursorPage, Item

Row = TypeVar("Row")


def decode_number_cursor(cursor: str | None) -> int:
    """Return the number that a cursor encodes; 0 without a cursor. Raises InputError for an invalid cursor."""
    digits = "0" if cursor is None else decode_cursor(cursor)
    if not digits.isdecimal() or len(digits) > 9:
        raise invalid_cursor_error()
    return int(digits)


def build_page(
    rows: Sequence[Row], limit: int, to_item: Callable[[Row], Item], position: Callable[[Row], object]
) -> CursorPage[Item]:
    """Return a page of the first `limit` rows, each converted by `to_item`.

    `rows` has one row more if there is a next page; its cursor is then the `position` of the last row of this page.
    """
    page = rows[:limit]
    following = encode_cursor(str(position(page[-1]))) if len(rows) > limit else None
    return CursorPage(items=[to_item(row) for row in page], next=following)
