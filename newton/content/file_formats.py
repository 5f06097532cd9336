"""Formats of documents, by file name or first bytes, and decoding of the bytes of a text."""

import codecs
import logging
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal, NamedTuple

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
    """Decode the bytes of a text. Without `encoding`, detect it.

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
    """Return the encoding of a text; None if it is not recognized.

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


DocumentFormat = Literal[
    "markdown", "text", "html", "pdf", "code", "data", "table", "log", "mail", "docx", "pptx", "xlsx", "notebook"
]

SNIFFED_BYTES = 8 * 1024  # from which a file without a known suffix is recognized as text

SUFFIXES: Mapping[DocumentFormat, str] = {
    "markdown": "md markdown mdx qmd",
    "text": "txt text rst adoc asciidoc org tex srt vtt",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "code": "py pyi pyw rb sh bash zsh fish pl pm r jl nim tcl cr ex exs coffee gd ps1 cmake mk c h cc cpp cxx hpp hh"
    " hxx m mm java js mjs cjs jsx ts mts cts tsx go rs cs kt kts swift scala php dart groovy gradle proto css scss"
    " less sol zig v sv glsl hlsl tf vue svelte sql lua hs elm adb ads vhd lisp cl clj cljs el scm erl hrl ml mli fs"
    " fsx pas bas vb f90 f95 asm s graphql gql thrift bat xml xsd xsl xslt svg wsdl plist",
    "data": "json json5 yaml yml toml ini cfg conf properties env",
    "table": "csv tsv tab psv",
    "log": "log out err jsonl ndjson",
    "mail": "eml mbox",
    "docx": "docx docm",
    "pptx": "pptx pptm",
    "xlsx": "xlsx xlsm xlsb xls ods",
    "notebook": "ipynb",
}
FORMAT_BY_SUFFIX: Mapping[str, DocumentFormat] = {
    f".{suffix}": form for form, suffixes in SUFFIXES.items() for suffix in suffixes.split()
}
_NAMES: Mapping[DocumentFormat, str] = {
    "code": "makefile gnumakefile dockerfile containerfile rakefile gemfile jenkinsfile vagrantfile procfile justfile"
    " cmakelists.txt",
    "text": "readme license licence copying authors changelog notice todo",
}
FORMAT_BY_NAME: Mapping[str, DocumentFormat] = {name: form for form, names in _NAMES.items() for name in names.split()}
UNREADABLE_SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys((".doc", ".dot", ".ppt", ".pps"), "old Office format"),
    **dict.fromkeys(
        (".odt", ".odp", ".rtf", ".epub", ".pages", ".key", ".numbers", ".msg"), "unsupported document format"
    ),
}
REMEDIES: Mapping[str, str] = {
    "old Office format": "Save the document as DOCX, PPTX or PDF.",
    "unsupported document format": "Save the document as DOCX, PPTX, HTML, PDF or text.",
}
# Folders of copies and build results, which a person did not write.
GENERATED_FOLDERS = frozenset(("node_modules", "__pycache__", "site-packages", "dist-packages", "bower_components"))
_ROTATED = re.compile(r"\.(?:\d{1,4}|old|bak)\Z")  # an ending of old logs, which follows the suffix


def find_format(path: PurePath) -> DocumentFormat | None:
    """Return the format that the name of a file states; None if it states none.

    >>> find_format(PurePath("a/Makefile")), find_format(PurePath("app.log.3")), find_format(PurePath("a.bin"))
    ('code', 'log', None)
    """
    name = path.name.lower()
    if (form := FORMAT_BY_NAME.get(name) or FORMAT_BY_SUFFIX.get(path.suffix.lower())) is not None:
        return form
    rotated = _ROTATED.sub("", name)
    return FORMAT_BY_SUFFIX.get(PurePath(rotated).suffix) if rotated != name else None


def looks_like_text(head: bytes) -> bool:
    """Return whether the first bytes of a file (at most `SNIFFED_BYTES`) are text in a known encoding."""
    is_cut = len(head) >= SNIFFED_BYTES
    if b"\0" not in head:
        return is_utf8(head, is_cut=is_cut) or _has_few_controls(head)
    encoding = find_encoding(head[: len(head) // 4 * 4])
    return encoding is not None and encoding.startswith(("utf-16", "utf_16", "utf-32", "utf_32"))


def _has_few_controls(head: bytes) -> bool:
    """Return whether a text in an unknown encoding has no control characters but white space and escapes."""
    return not head.translate(None, bytes([*range(0x20, 0x100), 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1B]))
