"""Entry point of `python -m newton`: runs the same command line as `newton`."""

import os
import sys
from importlib import import_module


def main() -> None:
    """Run the command line.

    `newton hook …` runs without importing it, because the import takes longer than a hook may take.
    """
    command, *arguments = sys.argv[1:] or [""]
    if command == "hook":
        hook_runner = import_module("newton.runtime.hooks.hook_runner")
        if hook_runner.is_hook_call(arguments):
            status = hook_runner.main(arguments)
            sys.stdout.flush()
            os._exit(status)  # nothing is open, and the interpreter's shutdown takes time
    import_module("newton.runtime.cli").main()


if __name__ == "__main__":
    main()
