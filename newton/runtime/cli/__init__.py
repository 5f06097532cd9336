"""Entry point of the command `newton`.

A command runs in the daemon of its data folder if one runs, and otherwise in this process. Modules that are needed only
in this process are imported late, so that a command that runs in the daemon starts fast.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from newton.runtime.cli.daemon_client import run_in_daemon


def main() -> NoReturn:
    """Run `sys.argv` as a command line, then exit with 0 (success), 1 (failure), 2 (rejected input) or 130 (Ctrl-C)."""
    code = run_in_daemon(sys.argv[1:])
    if code is None:
        code = import_module("newton.runtime.cli.app").run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader exited, or the stream is closed
            stream.flush()
    # Everything is closed. A native embedder thread still running after Ctrl-C would crash in the interpreter's
    # shutdown.
    os._exit(code)
