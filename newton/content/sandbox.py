"""Run a parser of untrusted documents in a subprocess with CPU and memory limits."""

import json
import logging
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from typing import Protocol, cast

from newton.content.sections import DocumentSection, ParsedDocument
from newton.errors import InputError

CPU_SECONDS = 120
MAX_MEGABYTES = 2_048

# The child must import the same packages as this process.
_CHILD_CODE = (
    "import sys; sys.path[:] = {path!r}; from newton.content.sandbox import serve; serve({reader!r}, {limits})"
)


class _DocumentParser(Protocol):
    def read(self, raw: bytes, /) -> ParsedDocument: ...


def run_parser(
    module: str, raw: bytes, *, seconds: int = CPU_SECONDS, max_megabytes: int = MAX_MEGABYTES
) -> ParsedDocument:
    """Return the result of the parser module's `read` for the bytes, within CPU and memory limits.

    Raises InputError, without the file's name, for any failure of the parser. Starting costs about 0.1 s.
    """
    code = _CHILD_CODE.format(path=sys.path, reader=module, limits=f"seconds={seconds}, megabytes={max_megabytes}")
    child = subprocess.run([sys.executable, "-I", "-c", code], input=raw, capture_output=True, check=False)
    if child.returncode == 0:
        return _decode_result(child.stdout)
    said = child.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200].rstrip(".")
    if child.returncode == -signal.SIGXCPU:
        raise InputError(f"takes more than {seconds} seconds to read.", hint="Split it, or save it in another format.")
    if "MemoryError" in said or child.returncode < 0:
        raise InputError(
            f"needs more than {max_megabytes} MB to read, or breaks its reader.", hint="Split or repair it."
        )
    raise InputError(f"is broken: {said}.", hint="Open it in a viewer, then save or export it again.")


def serve(module: str, *, seconds: int, megabytes: int) -> None:
    """Run in the child: read the document from standard input and write the result to standard output."""
    for limited, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, megabytes * 2**20),
    ):
        with suppress(ValueError, OSError):  # some systems reject one of the limits; the others still apply
            resource.setrlimit(limited, (most, resource.getrlimit(limited)[1]))
    logging.disable()
    try:
        reading = cast("_DocumentParser", import_module(module)).read(sys.stdin.buffer.read())
        answer = {"title": reading.title, "sections": reading.sections}
    except InputError as error:
        answer = {"what": error.what, "hint": error.hint}
    json.dump(answer, sys.stdout)


def _decode_result(output: bytes) -> ParsedDocument:
    answer = json.loads(output)
    if "what" in answer:
        raise InputError(answer["what"], hint=answer["hint"])
    return ParsedDocument(
        answer["title"], tuple(DocumentSection(heading, tuple(texts)) for heading, texts in answer["sections"])
    )
