"""How a command that fails says so: what is wrong and what to do, a line each, or both as JSON for programs."""

import re

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from newton.errors import InputError, NewtonError
from newton.runtime.cli.printing import json_of, say

_HINT_START = re.compile(r" (?=(?:Choose from|Did you mean)\b)")
_COMMAND_LIST = re.compile(r" Available commands: .*")  # never all of them, which --help has
_NOT_A_NUMBER = re.compile(r'unable to convert "(.*)" into (int|float)\.')
_NUMBER_NAMES = {"int": "a whole number", "float": "a number"}


def print_error(error: NewtonError, exit_status: int, *, as_json: bool) -> None:
    """Says it on stderr, where it never mixes with an answer."""
    if as_json:
        failure = {"error": {"code": error.code, "what": error.what, "hint": error.hint}, "status": exit_status}
        say(json_of(failure), aside=True)
    else:
        say(f"newton: {error.what}\n  {error.hint}", aside=True)


def to_input_error(error: CycloptsError) -> InputError:
    """The words of a command line that could not be read, as a failure like any other."""
    error.verbose = False
    command = " ".join(["newton", *(error.command_chain or ())])
    what, *remedies = _HINT_START.split(_describe(error, command), maxsplit=1)
    return InputError(what, hint=" ".join([*remedies, f"`{command} --help` shows what it takes."]))


def _describe(error: CycloptsError, command: str) -> str:
    if isinstance(error, UnusedCliTokensError):
        return f"`{command}` takes no {' '.join(map(repr, error.unused_tokens or ()))} there."
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.argument.name
        if error.keyword or error.argument.tokens:
            return f"{error.keyword or name} wants a value."
        return f"`{command}` wants its {name.removeprefix('--').upper().replace('-', '_')}."
    said = _COMMAND_LIST.sub("", " ".join(str(error).split()))
    return _NOT_A_NUMBER.sub(lambda found: f'"{found[1]}" is not {_NUMBER_NAMES[found[2]]}.', said)
