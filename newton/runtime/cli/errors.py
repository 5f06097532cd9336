"""Conversion of command-line parsing errors to errors with a remedy."""

import difflib
import re

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

from newton.errors import InputError
from newton.runtime.cli.command_registry import SYNONYMS

_HINT_START = re.compile(r" (?=(?:Choose from|Did you mean)\b)")
_COMMAND_LIST = re.compile(r" Available commands: .*")  # omitted: --help lists the commands
_UNKNOWN_COMMAND = re.compile(r'Unknown command "(.*)"\.')
_UNKNOWN_OPTION = re.compile(r"Unknown option: --(\S+)\.")
_SUGGESTED_OPTION = re.compile(r"Did you mean --(\S+)\?")
_MIN_SIMILARITY = 0.6  # of the names of two options without their dashes, which cyclopts compares with them
_NOT_A_NUMBER = re.compile(r'unable to convert "(.*)" into (int|float)\.')
_NUMBER_NAMES = {"int": "a whole number", "float": "a number"}


def to_input_error(error: CycloptsError) -> InputError:
    """Convert an error in parsing the command line to an InputError whose hint names the command's help."""
    error.verbose = False
    command = " ".join(["newton", *(error.command_chain or ())])
    problem, *hints = _HINT_START.split(_describe(error, command), maxsplit=1)
    if (unknown := _UNKNOWN_COMMAND.match(problem)) and command == "newton":
        synonyms = [name for name, others in SYNONYMS.items() if unknown[1].lower() in others]
        hints = [f'Did you mean "{name}"?' for name in synonyms] or hints
    if option := _UNKNOWN_OPTION.match(problem):
        hints = [hint for hint in hints if _is_similar(option[1], hint)]
    page = "newton help" if command == "newton" else f"{command} --help"
    return InputError(problem, hint=" ".join([*hints, f"See `{page}`."]))


def _is_similar(option: str, hint: str) -> bool:
    """Return False if a hint suggests an option whose name is not similar to `option`.

    >>> _is_similar("limt", "Did you mean --limit?"), _is_similar("source", "Did you mean --importance?")
    (True, False)
    """
    suggested = _SUGGESTED_OPTION.match(hint)
    return not suggested or difflib.SequenceMatcher(None, option, suggested[1]).ratio() >= _MIN_SIMILARITY


def _describe(error: CycloptsError, command: str) -> str:
    if isinstance(error, UnusedCliTokensError):
        return f"`{command}` does not accept {' '.join(map(repr, error.unused_tokens or ()))}."
    if isinstance(error, MissingArgumentError) and error.argument:
        name = error.argument.name
        if error.keyword or error.argument.tokens:
            return f"{error.keyword or name} requires a value."
        is_option = error.argument.index is None
        return f"`{command}` requires {name if is_option else name.removeprefix('--').upper().replace('-', '_')}."
    text = _COMMAND_LIST.sub("", " ".join(str(error).split()))
    return _NOT_A_NUMBER.sub(lambda match: f'"{match[1]}" is not {_NUMBER_NAMES[match[2]]}.', text)
