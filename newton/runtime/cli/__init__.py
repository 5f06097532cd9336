"""The command line `newton`. Modules of commands are loaded when they are called."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from cyclopts import App, CycloptsError, Group, Parameter

from newton import __version__
from newton.errors import NewtonError
from newton.runtime.cli.command_registry import COMMAND_GROUPS, DEFAULT_COMMANDS, HELP_GROUPS, TOP_LEVEL_COMMANDS
from newton.runtime.cli.errors import print_error, to_input_error
from newton.runtime.error_status import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, get_error_status

HELP_FLAGS = {"--help", "-h", "--version"}

_GROUPS = {title: Group(title, sort_key=position) for position, title in enumerate(HELP_GROUPS, 1)}
GROUP_BY_COMMAND = {command: _GROUPS[title] for title, commands in HELP_GROUPS.items() for command in commands}


def _format_default(value: object) -> str | None:
    """Format a default for the help. An unset option, a flag that is off and an empty text or list show none."""
    return None if value is None or value is False or value in ("", ()) else str(value)


HELP_DEFAULTS = Parameter(show_default=_format_default)


def build_app(argv: Sequence[str] = ()) -> App:
    """Build the application. Only the module of the called command is imported; the registry describes the others."""
    app = App(
        name="newton",
        version=__version__,
        help="Memory, context and decisions for AI agents.",
        default_parameter=HELP_DEFAULTS,
    )
    for name, description, commands in COMMAND_GROUPS:
        group = App(name=name, help=description, group=GROUP_BY_COMMAND[name])
        _register(group, commands, argv[1:2] if argv[:1] == [name] else ())
        app.command(group)
    _register(app, TOP_LEVEL_COMMANDS, argv[:1])
    return app


def expand_default_command(argv: list[str]) -> list[str]:
    """Insert a group's default command: `newton decisions --due` is `newton decisions list --due`."""
    name = "".join(argv[:1])
    is_short = name in DEFAULT_COMMANDS and (len(argv) == 1 or (argv[1].startswith("-") and argv[1] not in HELP_FLAGS))
    return [name, DEFAULT_COMMANDS[name], *argv[1:]] if is_short else argv


def _register(app: App, commands: Mapping[str, tuple[str, str]], called: Sequence[str]) -> None:
    for name, (function, description) in commands.items():
        group = GROUP_BY_COMMAND.get(name) if app.name == ("newton",) else None
        path = function if function.startswith("newton.bench.") else f"{__name__}.{function}"
        app.command(path, name=name, help=None if name in called else description, group=group)


def main() -> NoReturn:
    """Run the command line and exit: 0 success, 1 external failure, 2 rejected input, 130 interrupted."""
    code = run_command_line(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader exited, or the stream is closed
            stream.flush()
    # Everything is closed. A native embedder thread still running after Ctrl-C would crash in the interpreter's
    # shutdown.
    os._exit(code)


def run_command_line(argv: list[str]) -> int:
    """Run one command line and return its exit status. Expected errors print one message on stderr, not a traceback."""
    as_json = "--json" in argv
    try:
        argv = expand_default_command(argv)
        code = build_app(argv)(
            argv, exit_on_error=False, print_error=False, help_on_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        return _report_error(to_input_error(error), as_json=as_json)
    except NewtonError as error:
        return _report_error(error, as_json=as_json)
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output exited
        return EXIT_FAILED
    return code if isinstance(code, int) else EXIT_OK


def _report_error(error: NewtonError, *, as_json: bool) -> int:
    status = get_error_status(error.code).exit_code
    print_error(error, status, as_json=as_json)
    return status
