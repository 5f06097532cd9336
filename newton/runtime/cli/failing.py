"""How a command that fails says so: what is wrong and what to do, a line each, or both as JSON for programs."""

import json
import re
import sys

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from newton.errors import InputError, NewtonError

_REMEDY = re.compile(r" (?=(?:Choose from|Did you mean)\b)")
_COMMANDS = re.compile(r" Available commands: .*")  # never all of them, which --help has
_NO_NUMBER = re.compile(r'unable to convert "(.*)" into (int|float)\.')
# What a terminal would obey: it may be told to write to the clipboard, or to look as if something else had been said.
_ORDERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBERS = {"int": "a whole number", "float": "a number"}


def plain(text: str) -> str:
    """What somebody else said, as it may be printed.

    >>> plain("Yes.\\x1b]52;c;cm0gLXJm\\x07\\n")
    'Yes.]52;c;cm0gLXJm\\n'
    """
    return _ORDERS.sub("", text)


def told(error: NewtonError, status: int, *, as_json: bool) -> None:
    """Says it on stderr, where it never mixes with an answer."""
    if as_json:
        failure = {"error": {"code": error.code, "what": error.what, "hint": error.hint}, "status": status}
        print(json.dumps(failure, ensure_ascii=False, indent=2), file=sys.stderr)
    else:
        print(plain(f"newton: {error.what}\n  {error.hint}"), file=sys.stderr)


def unread(error: CycloptsError) -> InputError:
    """The words of a command line that could not be read, as a failure like any other."""
    error.verbose = False
    command = " ".join(["newton", *(error.command_chain or ())])
    what, *remedies = _REMEDY.split(_said(error, command), maxsplit=1)
    return InputError(what, hint=" ".join([*remedies, f"`{command} --help` shows what it takes."]))


def _said(error: CycloptsError, command: str) -> str:
    if isinstance(error, UnusedCliTokensError):
        return f"`{command}` takes no {' '.join(map(repr, error.unused_tokens or ()))} there."
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.argument.name
        if error.keyword or error.argument.tokens:
            return f"{error.keyword or name} wants a value."
        return f"`{command}` wants its {name.removeprefix('--').upper().replace('-', '_')}."
    said = _COMMANDS.sub("", " ".join(str(error).split()))
    return _NO_NUMBER.sub(lambda found: f'"{found[1]}" is not {_NUMBERS[found[2]]}.', said)
