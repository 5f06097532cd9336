"""Hints in the words of an interface: commands that a hint mentions become tools, routes or slash commands. Pure.

Code that raises an error does not know its caller, so hints name commands: "`newton censors relax ID` makes the censor
only warn". The interface that shows a hint renames them, by the table of operations.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from newton.errors import ForbiddenError, NewtonError, UnauthorizedError
from newton.runtime.interface_matrix import load_verbs

HintInterface = Literal["cli", "http", "mcp", "chat"]

# The interface of each origin of a call that is not a command.
ORIGIN_INTERFACES: Mapping[str, HintInterface] = {"http": "http", "mcp": "mcp", "agent": "mcp", "chat": "chat"}
DEFAULT_SUBCOMMANDS = ("list", "show", "run")  # of a group that is called without a subcommand

_COMMAND = re.compile(r"`newton ([^`]+)`")
_ROUTE = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) /v1/[^`]+)`")
_PARAMETER = re.compile(r"\{[^}]+\}")
_PLACEHOLDER = re.compile(r"[A-Z]+")  # such as NAME, an argument for the reader to fill in


class _Mention(NamedTuple):
    """An operation in a hint: its command, its positional arguments, and the values of its options."""

    command: str
    positional: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The positional arguments that are values, not placeholders."""
        return tuple(word for word in self.positional if not _PLACEHOLDER.fullmatch(word))


def rename_commands(text: str, interface: HintInterface) -> str:
    """Replace each mention of a command (`newton …` in backticks) by the name of the operation in an interface.

    A command that the interface does not have stays, because a person can run it. For the chat, routes are replaced as
    well: an error of a remote agent names routes.

    >>> hint = "`newton censors relax 4f2a` makes it warn."
    >>> [rename_commands(hint, interface) for interface in ("mcp", "chat")]
    ['`relax_censor` with `4f2a` makes it warn.', '`/relax-censor 4f2a` makes it warn.']
    >>> rename_commands("`newton serve` starts a daemon.", "http")
    '`newton serve` starts a daemon.'
    """
    if interface == "cli" or "`" not in text:
        return text
    if interface == "chat":
        text = _ROUTE.sub(lambda found: _name_command(found[1]) or found[0], text)
    return _COMMAND.sub(lambda found: _rename(found[1], interface) or found[0], text)


def rename_in_error(error: NewtonError, interface: HintInterface) -> NewtonError:
    """Return a copy of an error whose texts name operations of an interface.

    What a caller without a token or with too few rights can do is a command of another person, so it stays.
    """
    if isinstance(error, (UnauthorizedError, ForbiddenError)):
        return error
    renamed = type(error).__new__(type(error), *error.args)  # the constructors of the classes differ
    renamed.__dict__.update(error.__dict__)
    renamed.what, renamed.hint = (rename_commands(text, interface) for text in (error.what, error.hint))
    return renamed


def _rename(command: str, interface: HintInterface) -> str | None:
    mention = _parse_command(command)
    name = _names_by_command(interface).get(mention.command) if mention else None
    if mention is None or name is None:
        return None
    if interface == "http":
        return _format_route(load_routes()[name], mention)
    if interface == "chat":
        return f"`{' '.join((name, *mention.positional, *mention.options))}`"
    return f"`{name}`{_format_values(mention)}"


def _parse_command(command: str) -> _Mention | None:
    """Return the known command with which the text begins, and its arguments."""
    words = command.split()
    known = _names_by_command("cli")
    for length in range(min(len(words), 2), 0, -1):
        name = " ".join(words[:length])
        candidates = [name, *(f"{name} {word}" for word in DEFAULT_SUBCOMMANDS if length == 1)]
        if found := next((one for one in candidates if one in known), None):
            end = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
            plain = [n for n, word in enumerate(words) if n >= length and word[0] not in '-"…']
            return _Mention(found, tuple(words[n] for n in plain if n < end), tuple(words[n] for n in plain if n > end))
    return None


def _format_route(route: str, mention: _Mention) -> str:
    """Return a route with the arguments in place of its parameters, if these are as many and mean the same.

    Only the commands of sessions take a session as an argument; the others take it as an option.
    """
    parameters, values = _PARAMETER.findall(route), iter(mention.values)
    is_session_left_out = "{session}" in parameters and not mention.command.startswith("sessions ")
    if len(parameters) == len(mention.values) == len(mention.positional) and not is_session_left_out:
        return f"`{_PARAMETER.sub(lambda _: next(values), route)}`"
    return f"`{route}`{_format_values(mention)}"


def _format_values(mention: _Mention) -> str:
    return f" with `{' '.join(mention.values)}`" if mention.values else ""


def _name_command(route: str) -> str | None:
    """Return the command, as a hint mentions it, whose operation has this route with values."""
    for operation, known in load_routes().items():
        pattern = re.escape(_PARAMETER.sub("\0", known)).replace(re.escape("\0"), r"([^/]+)").replace("\0", r"([^/]+)")
        found = re.fullmatch(pattern, route)
        command = _commands_by_operation().get(operation)
        if found and command:
            values = (value for value in found.groups() if not value.startswith("{"))
            return f"`{' '.join(('newton', command, *values))}`"
    return None


@cache
def load_routes() -> Mapping[str, str]:
    """Return the route of each operation of the HTTP API, such as `POST /v1/memories`, from a generated file."""
    return json.loads(files("newton.runtime").joinpath("operation_routes.json").read_text(encoding="utf-8"))


@cache
def _names_by_command(interface: HintInterface) -> Mapping[str, str]:
    """Map each command to the name of its operation in an interface.

    If the operation has as many names there as commands, the names are in the same order; else the first one counts.
    """
    named: dict[str, str] = {}
    for row in load_verbs():
        commands, names = row.names("cli"), row.names(interface)
        if names:
            pairs = (
                zip(commands, names, strict=True) if len(names) == len(commands) else ((c, names[0]) for c in commands)
            )
            named |= dict(pairs)
    return named


@cache
def _commands_by_operation() -> Mapping[str, str]:
    return {operation: command for command, operation in _names_by_command("http").items()}
