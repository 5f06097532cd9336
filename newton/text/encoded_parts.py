"""The decoder of texts in base64, base32, digits, percent escapes or character references. Pure.

Censors, the redaction and the control of what leaves use it alike. In a short text, such as a link, parts may be short,
and written backwards.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote, unquote_plus

import re2

_MIN_CHARS, _MIN_BASE32 = 12, 16

# What may be an encoded part, in ASCII: a run, pairs of hexadecimal digits, numbers of characters, bits.
_RUN = re2.compile(rb"[A-Za-z0-9+/_-]{12,}={0,6}|[A-Za-z0-9+/_-]{6,}={1,6}")
_NUMBERS = re2.compile(rb"\b\d{2,3}(?:[ ,;]{1,2}\d{2,3}){5,}\b")
_SHORT_RUN, _SHORT_NUMBERS = re2.compile(rb"[A-Za-z0-9+/_-]{6,}={0,6}"), re2.compile(rb"\d{2,3}(?:\D+\d+)+")
_PAIRS = re2.compile(
    rb"(?:\b|[\\%])(?:0?x)?(?:[0-9A-Fa-f]{2}[ :,][\\%]?(?:0?x)?){5,}[0-9A-Fa-f]{2}|(?:\\x[0-9A-Fa-f]{2}){4,}"
)
_BITS = re2.compile(rb"\b[01]{8}(?:[ ,]?[01]{8}){3,}\b")
_PIECE = re.compile(rb"[A-Za-z0-9+]{6,}={0,6}")
_HEX = re.compile(rb"[0-9A-Fa-f]{6,}")
_NOT_HEX = re.compile(rb"0x|[^0-9A-Fa-f]")
_NOT_BIT = re.compile(rb"[^01]")
_NOT_BASE32 = re.compile(rb"[^A-Za-z2-7]")
_ENCODED_SIGN = re.compile(rb"[A-Z0-9=]")
_NUMBER = re.compile(rb"(?<!\d)\d{2,3}(?!\d)")
_URL_SIGNS = bytes.maketrans(b"-_", b"+/")
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")

EncodedPart = tuple[int, int, str]  # the position of a part in a text, and what it decodes to
_RawPart = tuple[int, int, bytes]


def find_encoded_parts(text: str, *, min_chars: int = 0, is_short: bool = False) -> Iterator[EncodedPart]:
    """Yield the parts that are the base64, base32 or digits of a printable text, if they have `min_chars` characters.

    >>> list(find_encoded_parts("run ZHJvcCB0YWJsZQ== now"))
    [(4, 20, 'drop table')]
    """
    raw = text.encode("ascii", "replace")
    for pattern, decode in _SHORT_DECODERS if is_short else _DECODERS:
        position = 0
        while match := pattern.search(raw, position):
            start, position = match.span()
            for first, last, decoded in decode(raw[start:position]):
                if last - first >= min_chars and (plain := _to_text(decoded)):
                    yield start + first, start + last, plain


def list_decoded(text: str, *, depth: int, limit: int | None = None) -> list[str]:
    """Return a text and what it, or a part of it, decodes to, encoded `depth` times at most.

    With `limit`, the number of texts is limited, and parts are read as in a short text.

    >>> list_decoded("go ZHJvcCUyMHRhYmxl", depth=2)
    ['go ZHJvcCUyMHRhYmxl', 'drop%20table', 'drop table']
    """
    found, pending = {text: None}, [text]
    for _ in range(depth):
        decoded = dict.fromkeys(two for one in pending for two in _decode(one, is_short=limit is not None))
        pending = [one for one in decoded if one not in found][: limit and limit - len(found)]
        found.update(dict.fromkeys(pending))
    return list(found)


def _decode(text: str, *, is_short: bool) -> Iterator[str]:
    yield from (decoded for _, _, decoded in find_encoded_parts(text, is_short=is_short))
    if ("%" in text and _PERCENT.search(text)) or (is_short and "+" in text):
        yield unquote_plus(text) if is_short else unquote(text)
    if "&" in text:
        yield html.unescape(text)
    if "\\u" in text:
        yield _UNICODE_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _decode_run(run: bytes) -> Iterator[_RawPart]:
    """Yield what a run, or a piece of it between signs such as those of a path, is in base64, base32 or hexadecimal.

    Words and paths in small letters are passed over.
    """
    if not _ENCODED_SIGN.search(run):
        return
    for start, piece in dict.fromkeys([(0, run), *((one.start(), one[0]) for one in _PIECE.finditer(run))]):
        if len(piece) >= _MIN_CHARS or piece.endswith(b"="):
            yield start, start + len(piece), _decode_base64(piece)
        if len(piece) >= _MIN_BASE32 and piece.isupper():
            yield start, start + len(piece), _decode_base32(piece)
    for digits in _HEX.finditer(run):
        if len(digits[0]) >= _MIN_CHARS:
            yield *digits.span(), _decode_hex(digits[0])


def _decode_short_run(run: bytes) -> Iterator[_RawPart]:
    for piece in dict.fromkeys([run, *_PIECE.findall(run)]):
        for directed in (piece, piece[::-1]):
            for decode in (_decode_base64, _decode_base32, _decode_hex):
                yield 0, len(run), decode(directed)


def _decode_whole(decode: Callable[[bytes], bytes]) -> Callable[[bytes], Iterator[_RawPart]]:
    return lambda part: iter([(0, len(part), decode(part))])


def _decode_base64(part: bytes) -> bytes:
    body = part.strip(b"=").translate(_URL_SIGNS)
    return binascii.a2b_base64(body + b"=" * (-len(body) % 4)) if len(body) % 4 != 1 else b""


def _decode_base32(part: bytes) -> bytes:
    body = part.strip(b"=")
    if len(body) % 8 in (1, 3, 6) or _NOT_BASE32.search(body):
        return b""
    return base64.b32decode(body + b"=" * (-len(body) % 8), casefold=True)


def _decode_hex(part: bytes) -> bytes:
    digits = _NOT_HEX.sub(b"", part)
    return binascii.unhexlify(digits) if len(digits) % 2 == 0 else b""


def _decode_numbers(part: bytes) -> bytes:
    codes = [code for code in map(int, _NUMBER.findall(part)) if 32 <= code < 256]
    return bytes(codes).decode("utf-8", "ignore").encode()


def _decode_bits(part: bytes) -> bytes:
    bits = _NOT_BIT.sub(b"", part)
    return int(bits, 2).to_bytes(len(bits) // 8)


def _to_text(raw: bytes) -> str:
    """Return printable UTF-8 as text; "" for other bytes."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(part.isprintable() for part in text.split()) else ""


_WHOLES = ((_PAIRS, _decode_whole(_decode_hex)), (_BITS, _decode_whole(_decode_bits)))
_DECODERS = ((_RUN, _decode_run), (_NUMBERS, _decode_whole(_decode_numbers)), *_WHOLES)
_SHORT_DECODERS = ((_SHORT_RUN, _decode_short_run), (_SHORT_NUMBERS, _decode_whole(_decode_numbers)), *_WHOLES)
