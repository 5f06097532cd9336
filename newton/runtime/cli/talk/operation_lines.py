"""Slash commands of the chat that each run one operation."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, cast

from newton.content.yaml_files import did_you_mean
from newton.errors import InputError
from newton.operations.declaration import Operation, load_operations
from newton.operations.fields import CALLER_SESSIONS

HELP_COLUMN = 44
REASON = "reason"  # the last words of a line
REASONS = "reasons"  # of which one may follow the last words, after "because"
SESSION = "session"
_OPTION = re.compile(r'\s*--([\w-]+)[ =](?:"([^"]*)"|(\S+))(?:\s+|$)')
_ARGUMENT = re.compile(r'\s*(?:"([^"]*)"|(\S+))')


class SlashCommand(NamedTuple):
    """A slash command of the chat that runs one operation (function of Newton).

    `parameters` are the arguments in the order of the line; the last one takes the rest of the line. With
    `uses_session`, the session of the conversation is also passed. With `has_reason`, the text after "because" is
    passed as a reason. `options` are arguments that may come first, as `--name value`.
    """

    operation: Operation
    parameters: tuple[str, ...]
    uses_session: bool
    has_reason: bool
    options: tuple[str, ...]

    @property
    def help_text(self) -> str:
        summary = self.operation.summary.rstrip(".")
        return summary[0].lower() + summary[1:]

    def takes_several(self, name: str) -> bool:
        """Return whether an argument is a list. Its option can then be repeated, once for each item."""
        schema = self.operation.input_model.model_json_schema()["properties"][name]
        return "array" in [one.get("type") for one in (schema, *schema.get("anyOf", ()))]

    @property
    def usage(self) -> str:
        """Return the names of the arguments in capitals, as the help shows them."""
        options = [f"[--{name.replace('_', '-')} {name.partition('_')[0].upper()}]" for name in self.options]
        words = (*self.parameters, *(("because", "reason") if self.has_reason else ()))
        return " ".join([*options, *(word.upper() for word in words)])


def _to_slash_command(operation: Operation) -> SlashCommand:
    """Return the slash command of an operation: required options, parameters by position and a reason are its words.

    A session that is required, or that is the caller's, is the session of the conversation unless the line names one.
    """
    values = [name for name in operation.required if name not in (*operation.positional, REASON)]
    words = (*values, *operation.positional, *(one for one in operation.parameters if one == REASON))
    words = tuple(name for name in dict.fromkeys(words) if name != SESSION)
    uses_session = SESSION in operation.required or operation.hints.get(SESSION) in CALLER_SESSIONS
    named = (*words, *operation.required)
    options = tuple(name for name in operation.parameters if name == SESSION or name not in named)
    return SlashCommand(operation, words, uses_session, REASONS in operation.parameters, options)


SLASH_COMMANDS: Mapping[str, SlashCommand] = {
    f"/{n.replace('_', '-')}": _to_slash_command(one) for n, one in load_operations().items() if one.is_at("chat")
}


def find_command(name: str, builtin_names: Iterable[str]) -> SlashCommand:
    """Return the named command. Raises InputError, which suggests the most similar command, for an unknown name."""
    if command := SLASH_COMMANDS.get(name):
        return command
    hint = f"{did_you_mean(name, [*SLASH_COMMANDS, *builtin_names])} /help lists the commands.".strip()
    raise InputError(f"Unknown command {name}.", hint=hint)


def parse_arguments(command: SlashCommand, text: str, *, session: str) -> dict[str, object]:
    """Parse the line after a command into arguments by name: words, or texts in double quotes; the last takes the rest.

    `session` is the default for the argument `session`. Raises InputError for a missing argument or too many words.

    >>> parse_arguments(SLASH_COMMANDS["/add-censor"], '"push to main" it needs a review', session="s")
    {'trigger': 'push to main', 'reason': 'it needs a review'}
    >>> parse_arguments(SLASH_COMMANDS["/recall"], "--min-relevance 0 the ferry", session="s")
    {'session': 's', 'min_relevance': '0', 'query': 'the ferry'}
    >>> parse_arguments(SLASH_COMMANDS["/decide"], "0.9 Use Postgres because the team knows it", session="s")
    {'session': 's', 'confidence': '0.9', 'description': 'Use Postgres', 'reasons': [{'text': 'the team knows it'}]}
    """
    arguments, text = _parse_options(command, text)
    for parameter in command.parameters[:-1]:
        if (match := _ARGUMENT.match(text)) is None:
            break
        arguments[parameter], text = match[1] if match[1] is not None else match[2], text[match.end() :]
    rest, _, reason = text.partition(" because ") if command.has_reason else (text, "", "")
    if rest.strip() and command.parameters:
        arguments[command.parameters[-1]] = rest.strip()
    elif rest.strip():
        hint = f"Its options are {command.usage}." if command.usage else "Send it without further words."
        raise InputError(f"The command does not accept {rest.strip()!r}.", hint=hint)
    if reason.strip():
        arguments[REASONS] = [{"text": reason.strip()}]
    fields = command.operation.input_model.model_fields
    if missing := [name for name in command.parameters if name not in arguments and fields[name].is_required()]:
        raise InputError(f"The command requires {missing[0].upper()}.", hint=f"Its arguments are {command.usage}.")
    return ({"session": session} if command.uses_session else {}) | arguments


def _parse_options(command: SlashCommand, text: str) -> tuple[dict[str, object], str]:
    """Return the options at the beginning of a line, by name, and the rest of the line."""
    options: dict[str, object] = {}
    while (match := _OPTION.match(text)) and (name := match[1].replace("-", "_")) in command.options:
        value, text = match[2] if match[2] is not None else match[3], text[match.end() :]
        given = cast("list[str]", options.get(name, []))
        options[name] = [*given, value] if command.takes_several(name) else value
    return options, text


def format_help(builtin_names: Container[str]) -> str:
    """Return the help of the slash commands that run an operation, without those that the chat replaces by its own.

    What a command does is beside its arguments, or below them if they are long.
    """
    lines = list[str]()
    for name, command in SLASH_COMMANDS.items():
        usage = f"{name} {command.usage}".strip()
        column = f"{usage}\n{'':{HELP_COLUMN}}" if len(usage) >= HELP_COLUMN else f"{usage:<{HELP_COLUMN}}"
        lines += [] if name in builtin_names else [f"{column}{command.help_text}"]
    return "\n".join(lines)
