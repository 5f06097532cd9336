"""Bytes as letters and digits, for tokens: a double click selects the whole text, and no line is broken within it."""

import math
import string

ALPHABET = string.digits + string.ascii_letters
_DIGITS = {character: value for value, character in enumerate(ALPHABET)}


def encode(data: bytes) -> str:
    """Return bytes as base 62 text. Its length depends only on the number of bytes.

    >>> encode(bytes(3) + b"ok")
    '00007q3'
    """
    number, text = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, len(ALPHABET))
        text = ALPHABET[digit] + text
    return text.rjust(count_characters(len(data)), ALPHABET[0])


def decode(text: str, size: int) -> bytes | None:
    """Return the `size` bytes that `encode` made a text of; None if it is no such text."""
    if len(text) != count_characters(size) or not all(character in _DIGITS for character in text):
        return None
    number = 0
    for character in text:
        number = number * len(ALPHABET) + _DIGITS[character]
    return number.to_bytes(size) if number < 256**size else None


def count_characters(size: int) -> int:
    """Return the number of characters of a text of `size` bytes."""
    return math.ceil(size * 8 / math.log2(len(ALPHABET)))
