"""The table of all commands: those that operations declare, and those of the registry.

Declarations are read from the source of their modules, because importing one loads the services.
"""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from newton.operations.groups import GROUPS
from newton.runtime.cli.command_registry import COMMAND_GROUPS, COMMANDS, DEFAULT_COMMANDS, DEFAULT_NAMES

OPERATIONS_PACKAGE = "newton.operations"
OPERATIONS_FOLDER = Path(__file__).parents[2] / "operations"
SUBJECT = "Operations on "  # the beginning of the docstring of a module of operations


class Command(NamedTuple):
    """A command: the import path of its function, its one-line help, its group in `newton help`, and its subject."""

    function: str
    help: str
    help_group: str
    subject: str = ""


class TopLevelCommand(NamedTuple):
    """The first word of commands: a command of its own, or a group of commands by name."""

    help: str
    help_group: str
    function: str | None = None
    commands: Mapping[str, Command] = {}
    default: str | None = None


@cache
def load_commands() -> Mapping[str, TopLevelCommand]:
    """Return the commands and groups of `newton` by name."""
    groups: dict[str, dict[str, Command]] = {}
    found: dict[str, TopLevelCommand] = {}
    for words, command in _list_commands():
        name, _, rest = words.partition(" ")
        if rest:
            groups.setdefault(name, {})[rest] = command
        else:
            found[name] = TopLevelCommand(command.help, command.help_group, command.function)
    return found | {name: _describe_group(name, commands) for name, commands in groups.items()}


def _describe_group(name: str, commands: Mapping[str, Command]) -> TopLevelCommand:
    """Return a group of commands, whose help is the subject of the operations with its default command."""
    default = DEFAULT_COMMANDS.get(name, next((one for one in DEFAULT_NAMES if one in commands), None))
    main = commands[default] if default else next(iter(commands.values()))
    text = COMMAND_GROUPS.get(name, main.subject)
    return TopLevelCommand(text, main.help_group, commands=commands, default=default)


def _list_commands() -> Iterator[tuple[str, Command]]:
    """Yield the words of each command and the command; one of the registry comes after that of its operation."""
    for help_group, (_, packages) in GROUPS.items():
        for package in packages:
            for path in sorted(OPERATIONS_FOLDER.joinpath(package).glob("*.py")):
                yield from _read_commands(path, help_group)
    for help_group, commands in COMMANDS.items():
        for words, (function, text) in commands.items():
            yield words, Command(function, text, help_group)


def _read_commands(path: Path, help_group: str) -> Iterator[tuple[str, Command]]:
    """Yield the words of each command that the module in the file `path` declares, and the command."""
    source = path.read_text(encoding="utf-8")
    if "command=" not in source:
        return
    tree = ast.parse(source)
    subject = _first_sentence(ast.get_docstring(tree)).removeprefix(SUBJECT)
    subject = subject[:1].upper() + subject[1:]
    for node in tree.body:
        if not isinstance(node, ast.AsyncFunctionDef):
            continue
        function = f"operation_commands:{path.parent.name}.{path.stem}.{node.name}"
        command = Command(function, _first_sentence(ast.get_docstring(node)), help_group, subject)
        for decorator in node.decorator_list:
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "command":
                    yield ast.literal_eval(keyword.value), command


def _first_sentence(text: str | None) -> str:
    return f"{' '.join((text or '').split()).partition('. ')[0].rstrip('.')}."
