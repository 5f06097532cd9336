"""Hints in the words of an interface: commands that a hint mentions become tools, routes or slash commands. Pure.

Code that raises an error does not know its caller, so hints name commands: "`newton censors relax ID` makes the censor
only warn". The interface that shows a hint renames them, by the table of operations.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import takewhile, zip_longest
from typing import Literal

from newton.errors import ForbiddenError, NewtonError, UnauthorizedError
from newton.runtime.interface_matrix import load_verbs

HintInterface = Literal["cli", "http", "mcp", "chat"]

# The interface of each origin of a call that is not a command.
ORIGIN_INTERFACES: Mapping[str, HintInterface] = {"http": "http", "mcp": "mcp", "agent": "mcp", "chat": "chat"}
DEFAULT_SUBCOMMANDS = ("list", "show", "run")  # of a group that is called without a subcommand
_NO_VALUES = '-"…'  # the beginnings of words that are no values of arguments
_MENTION = re.compile(r"`((?:newton|GET|POST|PUT|PATCH|DELETE) [^`]+)`")


def rename_commands(text: str, interface: HintInterface) -> str:
    """Replace each mention of a command (`newton …` in backticks) by the name of the operation in an interface.

    A command that the interface does not have stays, because a person can run it. For the chat, routes are replaced as
    well: an error of a remote agent names routes.

    >>> hint = "`newton censors relax 4f2a` makes it warn."
    >>> [rename_commands(hint, interface) for interface in ("mcp", "chat")]
    ['`newton censors relax 4f2a` makes it warn.', '`/relax-censor 4f2a` makes it warn.']
    >>> rename_commands("`newton serve` starts a daemon.", "http")
    '`newton serve` starts a daemon.'
    """
    if interface == "cli":
        return text
    return _MENTION.sub(lambda found: _rename(found[1].split(), interface) or found[0], text)


def rename_in_error(error: NewtonError, interface: HintInterface) -> NewtonError:
    """Return a copy of an error whose texts name the operations of an interface in place of commands.

    An error on missing rights is returned unchanged: its commands are for a person who has them.
    """
    if isinstance(error, (UnauthorizedError, ForbiddenError)):
        return error
    renamed = type(error).__new__(type(error), *error.args)  # the constructors of the classes differ
    renamed.__dict__.update(error.__dict__)
    renamed.what, renamed.hint = (rename_commands(text, interface) for text in (error.what, error.hint))
    return renamed


def _rename(words: list[str], interface: HintInterface) -> str | None:
    """Return the text for a mention of a command (`words`): the operation's name in the interface, and the arguments.

    Return None if the mention does not begin with a command that the interface has.
    """
    names = _load_names(interface)
    known = next((length for length in (3, 2) if " ".join(words[:length]) in names), 0)
    name, rest = names.get(" ".join(words[:known])), words[known:]
    if name is None:
        return None
    values = list(takewhile(lambda one: one[0] not in _NO_VALUES, rest))
    if interface == "chat":
        placeholders = [one for one in rest[len(values) :] if one.isupper()]  # of options, such as NAME
        return f"`{' '.join((name, *values, *placeholders))}`"
    given = " ".join(one for one in values if not one.isupper())
    return f"`{name}` with `{given}`" if given else f"`{name}`"


@cache
def load_routes() -> Mapping[str, str]:
    """Return the route of each operation of the HTTP API, such as `POST /v1/memories`, from a generated file."""
    return json.loads(files("newton.runtime").joinpath("operation_routes.json").read_text(encoding="utf-8"))


@cache
def _load_names(interface: HintInterface) -> Mapping[str, str | None]:
    """Return the names of operations in an interface, by command and, for the chat, also by route.

    A name is None if the interface does not have the operation. A group of commands has that of its default command.
    """
    # a row has its names in the order of its commands
    found: dict[str, str | None] = {}
    for row in load_verbs():
        routes = [load_routes()[operation] for operation in row.names("http")]
        names = routes if interface == "http" else row.names(interface)
        mentions = [f"newton {command}" for command in row.names("cli")]
        found |= dict(zip_longest(mentions, names[: len(mentions)]))
        if interface == "chat":
            found |= dict(zip(routes, names, strict=False))
    for default in DEFAULT_SUBCOMMANDS:
        for command in [one for one in found if one.endswith(f" {default}")]:
            found.setdefault(command.removesuffix(f" {default}"), found[command])
    return found
