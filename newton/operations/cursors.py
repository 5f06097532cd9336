"""Cursors for pages of lists: a position, encoded as opaque text."""

import base64
import binascii
from uuid import UUID

from newton.errors import InputError


def encode_cursor(position: str) -> str:
    """Return the cursor for a position.

    >>> decode_cursor(encode_cursor("42"))
    '42'
    """
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """Return the position that a cursor encodes. Raises InputError for an invalid cursor."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise invalid_cursor_error() from None


def decode_id_cursor(cursor: str | None) -> UUID | None:
    """Return the id that a cursor encodes; None without a cursor. Raises InputError for an invalid cursor."""
    try:
        return None if cursor is None else UUID(decode_cursor(cursor))
    except ValueError:
        raise invalid_cursor_error() from None


def decode_number_cursor(cursor: str) -> int:
    """Return the number that a cursor encodes. Raises InputError for an invalid cursor."""
    digits = decode_cursor(cursor)
    if not digits.isdecimal() or len(digits) > 9:
        raise invalid_cursor_error()
    return int(digits)


def invalid_cursor_error() -> InputError:
    return InputError("The cursor is invalid.", hint="Send the value of `next` from the previous page unchanged.")
