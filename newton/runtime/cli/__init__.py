"""The command `newton`.

A command runs in the daemon of its data folder if one runs, and otherwise in this process. Modules that are needed only
in this process are imported late, so that a command that runs in the daemon starts fast.
"""

from collections.abc import Sequence
from importlib import import_module

from newton.runtime.cli.command_registry import HELP_WORDS
from newton.runtime.cli.daemon_client import run_in_daemon


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit status: 0 (success), 1 (failure), 2 (rejected input) or 130 (Ctrl-C)."""
    if not argv or argv[0] in HELP_WORDS:
        return import_module("newton.runtime.cli.help_pages").show_help(argv)
    status = run_in_daemon(argv)
    return import_module("newton.runtime.cli.app").run_command_line(list(argv)) if status is None else status
