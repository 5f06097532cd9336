"""Functions on the content parts of messages. Images, audio and files are remembered as short texts."""

import base64
import binascii
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from newton.memory.memory import digest
from newton.memory.redaction.redactor import redact_secrets

TEXT_TYPES = frozenset({"text", "input_text", "output_text", "refusal"})
KINDS = {"image_url": "image", "input_image": "image", "input_audio": "audio", "video_url": "video"}
HEADER_CHARS = 400_000  # of base64, in which an image states its size
MAX_NAME_CHARS = 200  # of a URL or a file name
_DATA_URL = re.compile(r"data:(?P<media>[\w.+-]+/[\w.+-]+)?[^,]*?;base64,")
_PNG, _GIF, _JPEG = b"\x89PNG\r\n\x1a\n", b"GIF8", b"\xff\xd8"
# JPEG markers: of a frame header, which contains the size, and those without a length.
_JPEG_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})


def describe_parts(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a message: its text parts, and a text such as `[image: 1024x768 png]` for each other part."""
    return "\n".join(_text_of(part) if _is_text(part) else f"[{_describe(part)}]" for part in parts)


def clean_parts(parts: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the content parts to send to the model: secrets are removed from texts, all else is unchanged."""
    return tuple({**part, "text": redact_secrets(_text_of(part))} if _is_text(part) else part for part in parts)


def has_attachments(parts: Sequence[Mapping[str, Any]]) -> bool:
    return not all(map(_is_text, parts))


def hash_attachments(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return a hash of the content parts that are not text, such as images.

    Of a URL, credentials, query and fragment are left out, because signatures in them change.
    """
    sources = [_source_of(part) for part in parts if not _is_text(part)]
    return digest(*(source if _is_data(source) else _strip_url(source) for source in sources)).hex()


def _is_text(part: Mapping[str, Any]) -> bool:
    return _type_of(part) in TEXT_TYPES


def _type_of(part: Mapping[str, Any]) -> str:
    return str(part.get("type", "text"))


def _text_of(part: Mapping[str, Any]) -> str:
    text = part.get("text") or part.get("refusal")
    return text if isinstance(text, str) else ""


def _describe(part: Mapping[str, Any]) -> str:
    kind = KINDS.get(_type_of(part), _one_line(_type_of(part)))
    source, name = _source_of(part), _field(part, "filename")
    if name:
        return f"{kind}: {_one_line(name)}"
    if _is_data(source):
        return f"{kind}: {_describe_data(source, _field(part, 'format'))}"
    return f"{kind}: {_strip_url(source)}" if source else kind


def _source_of(part: Mapping[str, Any]) -> str:
    """Return the data or the address of a part: a data URL, another URL, bare base64, or the id of a file.

    Return "" if the part has none.
    """
    return next((found for name in ("url", "data", "file_data", "file_id") if (found := _field(part, name))), "")


def _field(part: Mapping[str, Any], name: str) -> str:
    """Return a text field of a content part, or "".

    OpenAI's part types keep their fields in an object, or a single text, under the name of the type.
    """
    inner = part.get(_type_of(part))
    if inner is None:
        inner = part.get("image_url", part)
    if isinstance(inner, str):
        return inner if name == "url" else ""
    value = cast("Mapping[str, object]", inner).get(name) if isinstance(inner, Mapping) else None
    return value if isinstance(value, str) else ""


def _is_data(source: str) -> bool:
    return source.startswith("data:") or (len(source) > MAX_NAME_CHARS and "://" not in source[:MAX_NAME_CHARS])


def _describe_data(source: str, format_name: str) -> str:
    match = _DATA_URL.match(source)
    encoded = source[match.end() :] if match else source
    media = (match and match["media"]) or ""
    name = _one_line(format_name) or media.rpartition("/")[2] or "data"
    size = _read_image_size(_decode_start(encoded))
    return f"{size[0]}x{size[1]} {name}" if size else f"{len(encoded) * 3 // 4 // 1024:,} KB {name}"


def _decode_start(encoded: str) -> bytes:
    start = encoded[:HEADER_CHARS]
    try:
        return base64.b64decode(start[: len(start) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _read_image_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height in the header of a PNG, GIF, JPEG or WEBP image; None if there is no such header."""
    try:
        if data.startswith(_PNG):
            return struct.unpack(">II", data[16:24])
        if data.startswith(_GIF):
            return struct.unpack("<HH", data[6:10])
        if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
            return _read_webp_size(data)
        return _read_jpeg_size(data) if data.startswith(_JPEG) else None
    except (struct.error, IndexError):
        return None


def _read_webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack("<HH", data[26:30])
            return width & 0x3FFF, height & 0x3FFF


def _read_jpeg_size(data: bytes) -> tuple[int, int] | None:
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        length = 0 if marker in _JPEG_BARE else struct.unpack(">H", data[place + 2 : place + 4])[0]
        place += 2 + length
    return None


def _strip_url(url: str) -> str:
    """Return a URL without credentials, query and fragment, which may contain secrets."""
    try:
        parts = urlsplit(url[: 10 * MAX_NAME_CHARS])
    except ValueError:
        return "a URL"
    if not parts.netloc:
        return _one_line(url)
    return _one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")


def _one_line(text: str) -> str:
    return redact_secrets(" ".join(text[:MAX_NAME_CHARS].split()))
