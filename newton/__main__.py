"""Entry point of `python -m newton`: runs the same command line as `newton`."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from newton.runtime.output_streams import OutputError, flush_streams, replace_streams, report_failure


def main() -> NoReturn:
    """Run `sys.argv` as a command line and exit.

    The status is 0 (success), 1 (failure), 2 (rejected input), 130 (Ctrl-C) or 141 (the reader of the output exited).
    """
    gc.set_threshold(10_000)  # by default, collections take a tenth of the time of loading the modules
    # Everything is closed, and the interpreter's shutdown takes time. A native embedder thread still running after
    # Ctrl-C would crash in it.
    os._exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run a command line with streams on which no write raises, and return the exit status."""
    replace_streams()
    try:
        status = _run(argv)
        flush_streams()
    except OutputError as error:
        return report_failure(error)
    return status


def _run(argv: Sequence[str]) -> int:
    """Run a command line; `newton hook …` without importing it, because that takes longer than a hook may take."""
    command, *arguments = argv or [""]
    if command == "hook":
        hook_runner = import_module("newton.runtime.hooks.hook_runner")
        if hook_runner.is_hook_call(arguments):
            return hook_runner.main(arguments)
    return import_module("newton.runtime.cli").run(argv)


if __name__ == "__main__":
    main()
