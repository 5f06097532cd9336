"""Decoding of the bytes of a text: by a given encoding, by its byte order mark, as UTF-8, or by detection."""

import codecs
import logging
from typing import NamedTuple

from newton.errors import InputError

SAMPLE_BYTES = 256 * 1024  # from which an encoding is detected
# The encoding of short texts with few letters outside of ASCII, which give the detection too little evidence.
FALLBACK_ENCODING = "cp1252"
MIN_EVIDENCE_BYTES = 12  # outside of ASCII

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LINE_ENDS = str.maketrans({"\r": "\n", "\f": "\n", "\v": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n"})


class DecodedText(NamedTuple):
    """A text with line feeds as its only line ends, and its encoding."""

    text: str
    encoding: str


def check_encoding(name: str) -> str:
    """Return the standard name of an encoding of text. Raises InputError for an unknown one."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)
    except LookupError:
        raise InputError(
            f"{name!r} is not a known encoding.", hint="Use a name such as utf-8, cp1252, latin-1, utf-16 or shift_jis."
        ) from None
    return found.name


def decode_text(raw: bytes, encoding: str | None = None) -> DecodedText:
    """Decode a text. Without `encoding`, detect it.

    Raises InputError for bytes that are not text, or not in this encoding.
    """
    name = encoding or find_encoding(raw)
    if name is None:
        raise InputError(
            "its encoding is not recognized.", hint="Give the encoding with --encoding, or save the file as UTF-8."
        )
    try:
        text = raw.decode(name)
    except UnicodeError as error:
        at = f": byte {error.start + 1} is 0x{raw[error.start]:02x}" if isinstance(error, UnicodeDecodeError) else ""
        raise InputError(
            f"it is not valid {name}{at}.", hint="Give another encoding with --encoding, or save the file as UTF-8."
        ) from None
    if (position := text.find("\0")) >= 0:
        raise InputError(
            f"it has a NUL character, at character {position + 1}.", hint="If the file is text, save it as UTF-8."
        )
    return DecodedText(text.removeprefix("\ufeff").replace("\r\n", "\n").translate(_LINE_ENDS), name)


def find_encoding(raw: bytes) -> str | None:
    """Return the encoding of a text, or None if it is not recognized.

    A byte order mark and valid UTF-8 decide; other texts are compared with the letter frequencies of languages.
    """
    if marked := find_byte_order_mark(raw):
        return marked
    if is_utf8(raw):
        return "utf-8"
    sample = raw[:SAMPLE_BYTES]
    if sum(byte > 0x7F for byte in sample[:4_096]) < MIN_EVIDENCE_BYTES and b"\0" not in sample:
        return FALLBACK_ENCODING if _decodes(raw, FALLBACK_ENCODING) else "latin-1"
    return _detect(sample)


def find_byte_order_mark(raw: bytes) -> str | None:
    """Return the encoding that the byte order mark at the beginning of a text names; None without a mark."""
    return next((name for mark, name in _MARKS if raw.startswith(mark)), None)


def is_utf8(raw: bytes, *, is_cut: bool = False) -> bool:
    """Return whether the bytes are valid UTF-8. With `is_cut`, the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw, final=not is_cut)
    except UnicodeDecodeError:
        return False
    return True


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _detect(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes  # noqa: PLC0415 (it takes 30 ms to load, and few texts need it)

    logging.getLogger("charset_normalizer").disabled = True
    best = from_bytes(sample).best()
    return None if best is None or best.encoding == "ascii" else best.encoding
