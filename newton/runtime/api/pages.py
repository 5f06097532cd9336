"""Cursors: where a list goes on. Callers hand them back as they are; what is in them may change."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from newton.errors import InputError
from newton.runtime.api.shapes import Item, Page

Row = TypeVar("Row")


def cursor(place: str) -> str:
    """
    >>> read(cursor("42"))
    '42'
    """
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def read(given: str) -> str:
    """The place that a cursor stands for. Raises InputError for what is no cursor."""
    try:
        return base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _no_cursor() from None


def read_id(given: str | None) -> UUID | None:
    """The id that a cursor stands for."""
    try:
        return None if given is None else UUID(read(given))
    except ValueError:
        raise _no_cursor() from None


def read_number(given: str | None) -> int:
    """The number that a cursor stands for; 0 for none."""
    place = "0" if given is None else read(given)
    if not place.isdecimal() or len(place) > 9:
        raise _no_cursor()
    return int(place)


def page(rows: Sequence[Row], limit: int, show: Callable[[Row], Item], place: Callable[[Row], object]) -> Page[Item]:
    """A page of at most `limit` of the rows, which are one more than that when there is a next page."""
    shown = rows[:limit]
    more = len(rows) > limit
    return Page(items=[show(row) for row in shown], next=cursor(str(place(shown[-1]))) if more else None)


def _no_cursor() -> InputError:
    return InputError("The cursor is none of a list.", hint="Give `next` of a page as it was answered.")
