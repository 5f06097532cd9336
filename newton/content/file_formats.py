"""Formats of documents by file name, and by the first bytes of files with unknown names."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from newton.content.charset import find_encoding, is_utf8

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
