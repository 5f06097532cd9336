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
        hook_client = import_module("newton.runtime.hooks.hook_client")
        if hook_client.is_hook_call(arguments):
            status = hook_client.main(arguments)
            sys.stdout.flush()
            os._exit(status)  # nothing is open, and the interpreter's shutdown takes time
    import_module("newton.runtime.cli").main()


if __name__ == "__main__":
    main()
