"""The standard output and standard error of a process, on which a write never raises for an encoding or a closed pipe.

What the encoding of a stream does not have is replaced: Newton's own symbols by ASCII of the same meaning, the rest by
`?`. If standard output cannot be written, the process exits: silently with the status of a program that SIGPIPE ended
if the reader has exited, and with one line on standard error otherwise, for example on a full disk. What is written to
a terminal that was closed is lost: SIGHUP ends the process, and a chat first stores the part of the answer that it
has. If standard error cannot be written, its text is lost and the process goes on, because a daemon must not end with
the program that reads its log.
"""

import codecs
import errno
import io
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# The symbols that commands print, in ASCII. Those of states differ from one another.
ASCII_SYMBOLS = {
    **{"✓": "[ok]", "✗": "[failed]", "·": "-", "○": "o", "▸": ">", "‖": "||", "☐": "[ ]", "☑": "[x]"},
    **{"→": "->", "←": "<-", "×": "x", "…": "...", "–": "-", "—": "-", "•": "*", "›": ">"},
    **{"─": "-", "│": "|", "├": "|", "┤": "|", "└": "`", "▇": "=", "●": "#", "◉": "@"},  # of a plot: one character each
}
REPLACE_SYMBOLS = "newton.replace_symbols"  # a handler of encoding errors
EXIT_PIPE_CLOSED = 128 + signal.SIGPIPE  # as a shell reports a program that SIGPIPE has ended


class OutputError(SystemExit):
    """Standard output cannot be written. `code` is the exit status; `reason` is None if its reader has exited.

    It is a SystemExit, because handlers of OSError, such as that of a database connection, would catch an OSError.
    """

    def __init__(self, error: OSError) -> None:
        is_closed = isinstance(error, BrokenPipeError)
        super().__init__(EXIT_PIPE_CLOSED if is_closed else 1)
        self.reason = None if is_closed else error.strerror


class _OutputFile(io.FileIO):
    """The file of standard output."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "wb", closefd=False)
        self._is_terminal = self.isatty()  # of a closed terminal it is False

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return self._write_blocking(data)
        except OSError as error:
            if error.errno == errno.EIO and self._is_terminal:
                return memoryview(data).nbytes
            raise OutputError(error) from None

    def _write_blocking(self, data: "ReadableBuffer") -> int:
        while (written := super().write(data)) is None:  # another program has made the terminal non-blocking
            select.select([], [self], [])
        return written


class _ErrorFile(_OutputFile):
    """The file of standard error."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return self._write_blocking(data)
        except OSError:
            return memoryview(data).nbytes


def replace_streams() -> None:
    """Replace the standard streams of this process."""
    codecs.register_error(REPLACE_SYMBOLS, _replace_symbols)
    sys.stdout, sys.stderr = _replace(sys.stdout, _OutputFile), _replace(sys.stderr, _ErrorFile)


def _replace(stream: TextIO | None, kind: type[_OutputFile]) -> TextIO:
    """Return a stream that writes to the file of `stream`; one that drops the text if `stream` has no file."""
    if not isinstance(stream, io.TextIOWrapper):
        return Path(os.devnull).open("w", encoding="utf-8", errors="replace")
    stream.flush()
    file = kind(stream.fileno())
    return io.TextIOWrapper(
        file if stream.write_through else io.BufferedWriter(file),
        encoding=stream.encoding,
        errors=REPLACE_SYMBOLS,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _replace_symbols(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of the characters that an encoding does not have, and where it goes on."""
    assert isinstance(error, UnicodeEncodeError)
    refused = error.object[error.start : error.end]
    return "".join(ASCII_SYMBOLS.get(character, "?") for character in refused), error.end


def flush_streams() -> None:
    """Write what the standard streams still hold. Raises OutputError if standard output cannot be written."""
    sys.stderr.flush()
    sys.stdout.flush()


def report_failure(error: OutputError) -> int:
    """Print why standard output cannot be written, unless its reader has exited; return the exit status."""
    if error.reason is not None:
        sys.stderr.write(f"newton: Standard output cannot be written: {error.reason}.\n")
        sys.stderr.flush()
    assert isinstance(error.code, int)
    return error.code
