"""The pages of `newton --help` and `newton help`. They load no library, because most of their time would be for it."""

from collections.abc import Iterable, Sequence
from importlib import import_module

from newton.operations.groups import GROUPS
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.command_registry import MAIN_COMMANDS, TITLE
from newton.runtime.cli.printing import fit_lines, say

USES = (
    ("newton help GROUP", "List the commands of a group."),
    ("newton COMMAND --help", "Describe a command, or list the commands that begin with it."),
)


def show_help(argv: Sequence[str]) -> int:
    """Print the page that a command line asks for, and return the exit status.

    `newton help COMMAND` is the help of a command, unless a group of the help has its name.
    """
    match list(argv):
        case [_, name] if name in GROUPS:
            page = _format_group(name)
        case [_, *words] if words:
            return import_module("newton.runtime.cli.app").run_command_line([*words, "--help"])
        case ["help"]:
            page = f"Usage: newton help GROUP\n\n{_format_groups()}"
        case _:
            page = f"Usage: newton COMMAND\n\n{TITLE}\n\n{_format_commands(MAIN_COMMANDS)}\n\n{_format_groups()}"
    say(fit_lines(page, current_terminal().columns()))
    return 0


def _format_group(name: str) -> str:
    commands = sorted(one for one, command in load_commands().items() if command.help_group == name)
    return f"{GROUPS[name].description}\n\n{_format_commands(commands)}\n\n{_format_rows(USES[1:])}"


def _format_groups() -> str:
    groups = [(name, group.description) for name, group in GROUPS.items()]
    return f"Groups of commands:\n{_format_rows(groups)}\n\n{_format_rows(USES)}"


def _format_commands(names: Iterable[str]) -> str:
    return f"Commands:\n{_format_rows([(name, load_commands()[name].help) for name in names])}"


def _format_rows(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:{width}}  {text}" for name, text in rows)
