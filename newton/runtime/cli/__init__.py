"""The command line `newton`. A command runs in the daemon of the data folder, or else in this process.

What a command that runs in a daemon does not need is loaded late.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from newton.runtime.cli.daemon_client import run_in_daemon


def main() -> NoReturn:
    """Run the command line and exit: 0 success, 1 external failure, 2 rejected input, 130 interrupted."""
    code = run_in_daemon(sys.argv[1:])
    if code is None:
        code = import_module("newton.runtime.cli.app").run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader exited, or the stream is closed
            stream.flush()
    # Everything is closed. A native embedder thread still running after Ctrl-C would crash in the interpreter's
    # shutdown.
    os._exit(code)
