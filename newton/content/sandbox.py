"""Parsing of untrusted documents in a subprocess with limits on CPU time and memory."""

import json
import logging
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from typing import Any, Protocol, cast

from newton.content.sections import DocumentSection, ParsedDocument
from newton.errors import InputError

CPU_SECONDS = 120
MAX_MEGABYTES = 2_048

# The child must import the same packages as this process.
_CHILD_CODE = "import sys; sys.path[:] = {path!r}; from newton.content.sandbox import serve; serve{arguments!r}"


class _DocumentParser(Protocol):
    def read(self, raw: bytes, /) -> ParsedDocument: ...


class ParserStoppedError(Exception):
    """Error of a document whose parser was ended by `stop_parsers`."""


_running: set["subprocess.Popen[bytes]"] = set()
_stopped: set["subprocess.Popen[bytes]"] = set()


def stop_parsers() -> None:
    """Kill the subprocesses that parse documents now, because their documents are no longer wanted."""
    for child in list(_running):
        _stopped.add(child)
        child.kill()


def run_parser(
    module: str, raw: bytes, *, seconds: int = CPU_SECONDS, max_megabytes: int = MAX_MEGABYTES
) -> ParsedDocument:
    """Call the function `read` of a parser module in a subprocess with limits; return the document.

    The subprocess takes about 0.1 s more. Raises InputError if the parser fails or exceeds a limit, and
    ParserStoppedError if `stop_parsers` ends it.
    """
    code = _CHILD_CODE.format(path=sys.path, arguments=(module, seconds, max_megabytes))
    # of a session of its own, so that an interrupt from the terminal reaches only this process, which ends the child
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        _running.add(child)
        try:
            output, errors = child.communicate(raw)
        finally:
            _running.discard(child)
    if child.returncode == 0:
        return _decode_result(output)
    if child.returncode == -signal.SIGKILL and child in _stopped:
        _stopped.discard(child)
        raise ParserStoppedError
    message = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:200].rstrip(".")
    if child.returncode == -signal.SIGXCPU:
        raise InputError(
            f"the document takes more than {seconds} seconds to read.",
            hint="Split the document, or save it in another format.",
        )
    if "MemoryError" in message or child.returncode < 0:
        what = f"the document needs more than {max_megabytes} MB to read, or crashes the parser."
        raise InputError(what, hint="Split or repair the document.")
    raise InputError(
        f"the document is broken: {message}.", hint="Open the document in a viewer, then save or export it again."
    )


def serve(module: str, seconds: int, megabytes: int) -> None:
    """Parse the document from standard input, and write the result as JSON to standard output.

    Runs in the subprocess.
    """
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: seconds, resource.RLIMIT_AS: megabytes * 2**20}
    for kind, limit in limits.items():
        with suppress(ValueError, OSError):  # some systems reject one of the limits; the others still apply
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
    logging.disable()
    try:
        parsed = cast("_DocumentParser", import_module(module)).read(sys.stdin.buffer.read())
        result = {"title": parsed.title, "sections": parsed.sections, "date": parsed.date}
    except InputError as error:
        result = {"what": error.what, "hint": error.hint}
    json.dump(result, sys.stdout, default=datetime.isoformat)


def _decode_result(output: bytes) -> ParsedDocument:
    result = json.loads(output)
    if "what" in result:
        raise InputError(result["what"], hint=result["hint"])
    return ParsedDocument(
        result["title"], tuple(map(_decode_section, result["sections"])), _decode_date(result["date"])
    )


def _decode_section(fields: Sequence[Any]) -> DocumentSection:
    section = DocumentSection._make(fields)
    return section._replace(
        paragraphs=tuple(section.paragraphs),
        spans=tuple((first, last) for first, last in section.spans),
        date=_decode_date(fields[-1]),
    )


def _decode_date(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
