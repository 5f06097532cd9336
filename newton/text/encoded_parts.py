"""Parts of a text in base64, base32, digits, percent escapes or character references, and what they decode to. Pure."""

import base64
import binascii
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

_MIN_CHARS = 12

_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_MIN_CHARS},}}={{0,2}}|[A-Za-z0-9+/_-]{{6,}}={{1,2}}")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{16,}={0,6}(?![A-Za-z0-9])")
_HEX = re.compile(rf"[0-9A-Fa-f]{{{_MIN_CHARS},}}")
_HEX_PAIRS = re.compile(
    r"(?<![0-9A-Za-z])(?:[\\%]?x?[0-9A-Fa-f]{2}[ :,]){5,}[\\]?x?[0-9A-Fa-f]{2}|(?:\\x[0-9A-Fa-f]{2}){4,}"
)
_NUMBERS = re.compile(r"(?<![\w.])\d{2,3}(?:[ ,;]{1,2}\d{2,3}){5,}(?![\w.])")
_BITS = re.compile(r"(?<!\w)[01]{8}(?:[ ,]?[01]{8}){3,}(?!\w)")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_NOT_HEX, _NOT_BIT, _NUMBER = re.compile(r"[^0-9A-Fa-f]"), re.compile("[^01]"), re.compile(r"\d+")


EncodedPart = tuple[int, int, str]  # the position of a part in a text, and what it decodes to


def find_encoded_parts(text: str, *, min_chars: int = 0) -> Iterator[EncodedPart]:
    """Yield the parts that are the base64, base32 or digits of a printable text, if they have `min_chars` characters.

    >>> list(find_encoded_parts("run ZHJvcCB0YWJsZQ== now"))
    [(4, 20, 'drop table')]
    """
    for pattern, decode in _DECODERS:
        for match in pattern.finditer(text):
            if len(match[0]) >= min_chars and (decoded := _to_text(decode(match[0]))):
                yield match.start(), match.end(), decoded


def unescape(text: str) -> Iterator[str]:
    """Yield the whole text with its percent escapes, character references or `\\u` escapes replaced, if it has any."""
    if "%" in text and _PERCENT.search(text):
        yield unquote(text)
    if "&" in text and (unescaped := html.unescape(text)) != text:
        yield unescaped
    if "\\u" in text:
        yield _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _decode_base64(part: str) -> bytes:
    body = part.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(body + "=" * (-len(body) % 4)) if len(body) % 4 != 1 else b""


def _decode_base32(part: str) -> bytes:
    body = part.rstrip("=")
    return base64.b32decode(body + "=" * (-len(body) % 8)) if len(body) % 8 not in (1, 3, 6) else b""


def _decode_hex(part: str) -> bytes:
    digits = _NOT_HEX.sub("", part)
    return binascii.unhexlify(digits) if len(digits) % 2 == 0 else b""


def _decode_numbers(part: str) -> bytes:
    codes = list(map(int, _NUMBER.findall(part)))
    return bytes(codes) if max(codes) < 256 else b""


def _decode_bits(part: str) -> bytes:
    bits = _NOT_BIT.sub("", part)
    return int(bits, 2).to_bytes(len(bits) // 8)


def _to_text(raw: bytes) -> str:
    """Return printable UTF-8 as text; "" for other bytes."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(character.isprintable() or character.isspace() for character in text) else ""


_DECODERS = (
    (_BASE64, _decode_base64),
    (_BASE32, _decode_base32),
    (_HEX, _decode_hex),
    (_HEX_PAIRS, _decode_hex),
    (_NUMBERS, _decode_numbers),
    (_BITS, _decode_bits),
)
