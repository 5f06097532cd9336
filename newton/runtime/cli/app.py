"""The cyclopts application that parses and runs a command line. It imports only the module of the called command."""

import difflib
import inspect
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnusedCliTokensError

from newton import __version__
from newton.errors import InputError, NewtonError
from newton.memory.redaction.tally import redaction_tally
from newton.operations.groups import GROUPS
from newton.runtime.cli.command_context import RunInProcessError, current_context, use_context
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.command_registry import HELP_FLAGS, SYNONYMS, TITLE
from newton.runtime.cli.printing import print_error, say
from newton.runtime.error_status import EXIT_INTERRUPTED, EXIT_OK, get_error_status

_HINT_START = re.compile(r" (?=(?:Choose from|Did you mean)\b)")
_COMMAND_LIST = re.compile(r" Available commands: .*")  # omitted: --help lists the commands
_UNKNOWN_COMMAND = re.compile(r'Unknown command "(.*)"\.')
_UNKNOWN_OPTION = re.compile(r"Unknown option: --(\S+)\.")
_SUGGESTED_OPTION = re.compile(r"Did you mean --(\S+)\?")
PROJECT_OPTION = "--project"
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


def _format_default(value: object) -> str | None:
    """Return the default of an option as the help shows it.

    Return None, so that no default is shown, for an unset option, a flag that is off and an empty text or list.
    """
    return None if value is None or value is False or value in ("", ()) else str(value)


HELP_DEFAULTS = Parameter(show_default=_format_default)


def build_app(argv: Sequence[str] = ()) -> App:
    """Build the application that parses the command line `argv`.

    Only the module of the command in `argv` is imported. If `argv` begins with the name of a command, the other
    commands are left out, because cyclopts would look at each of them. If `argv` is empty, all groups have their
    commands.
    """
    app = App(
        name="newton",
        version=__version__,
        help=TITLE,
        default_parameter=HELP_DEFAULTS,
    )
    known, called = load_commands(), "".join(argv[:1])
    sections = {name: Group(name, sort_key=position) for position, name in enumerate(GROUPS)}
    for name, command in {called: known[called]}.items() if called in known else known.items():
        section = sections[command.help_group]
        if command.function:
            _register(app, name, command.function, None if name == called else command.help, section)
            continue
        group = App(name=name, help=command.help, group=section)
        for inner, one in command.commands.items() if not argv or name == called else ():
            _register(group, inner, one.function, None if inner in argv[1:2] else one.help)
        app.command(group)
    return app


def take_project(argv: list[str]) -> tuple[list[str], str | None]:
    """Return the command line without the option `--project NAME`, which every command has, and the name.

    Of `newton hook`, the option means the settings file of the folder. Raises InputError if the name is missing.

    >>> take_project(["recall", "tea", "--project", "shop", "--json"])
    (['recall', 'tea', '--json'], 'shop')
    """
    rest, project, words = list[str](), None, iter(argv)
    if argv[:1] == ["hook"] or not any(PROJECT_OPTION in word for word in argv):
        return argv, None
    for word in words:
        name, has_value, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], project
        if name != PROJECT_OPTION:
            rest.append(word)
        elif not (project := value if has_value else next(words, "")):
            raise InputError("--project requires a value.", hint="`newton projects` lists the projects.")
    return rest, project


def expand_default_command(argv: list[str]) -> list[str]:
    """Return the command line, with the default command inserted if it names a group without a command.

    For example, `newton decisions --due` becomes `newton decisions list --due`.
    """
    group = load_commands().get("".join(argv[:1]))
    is_short = len(argv) == 1 or (len(argv) > 1 and argv[1].startswith("-") and argv[1] not in HELP_FLAGS)
    return [argv[0], group.default, *argv[1:]] if group and group.default and is_short else argv


def _register(app: App, name: str, function: str, text: str | None, section: Group | None = None) -> None:
    app.command(f"{__package__}.{function}", name=name, help=text, group=section)


# Commands that say themselves which secrets they removed.
_SELF_REPORTING = frozenset({"remember", "ask", "chat", "import", "ingest", "artifacts"})


def run_command_line(argv: list[str]) -> int:
    """Run one command line and return its exit status.

    An expected error is printed on standard error as one message, without a traceback.
    """
    try:
        argv, project = take_project(argv)
        expanded = expand_default_command(argv)
        with use_context(replace(current_context(), project=project)), _report_redactions(argv):
            code = build_app(expanded)(
                expanded, exit_on_error=False, print_error=False, help_on_error=False, result_action="return_value"
            )
    except (CycloptsError, NewtonError) as error:
        return report_error(error, argv)
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else EXIT_OK


async def run_hosted_command(argv: list[str]) -> int:
    """Run one command line inside the daemon, for the caller of `current_context`, and return its exit status.

    Expected errors are printed as in `run_command_line`. Raises RunInProcessError, before any output, if only the
    caller's process can run the command: it reads or writes a file of its arguments, prints help, or asks the user.
    """
    from asyncio import to_thread  # noqa: PLC0415 (only a daemon needs it; help is printed without it)

    try:
        argv, project = take_project(argv)
        command, bound = await to_thread(parse_command_line, expand_default_command(argv))
        if not command.__module__.startswith(f"{__package__}.") or _names_file(bound):
            raise RunInProcessError
        with use_context(replace(current_context(), project=project)), _report_redactions(argv):
            result = command(*bound.args, **bound.kwargs)
            code = await result if inspect.isawaitable(result) else result
    except (CycloptsError, NewtonError) as error:
        return report_error(error, argv)
    except EOFError:
        return EXIT_INTERRUPTED
    return code if isinstance(code, int) else EXIT_OK


def parse_command_line(argv: list[str]) -> tuple[Callable[..., object], inspect.BoundArguments]:
    """Return the function of a command and its arguments. Raises CycloptsError for an invalid command line."""
    command, bound, _ = build_app(argv).parse_args(argv, exit_on_error=False, print_error=False, help_on_error=False)
    return command, bound


def _names_file(bound: inspect.BoundArguments) -> bool:
    return any(isinstance(value, Path) for value in bound.arguments.values())


@contextmanager
def _report_redactions(argv: Sequence[str]) -> Generator[None]:
    """Print on standard error which secrets a command removed from its input, if it succeeds and does not say so."""
    with redaction_tally() as redacted:
        yield
        if (removed := redacted.count()) and "".join(argv[:1]) not in _SELF_REPORTING:
            from newton.operations.text_format import format_redactions  # noqa: PLC0415 (rarely needed, slow)

            say(f"({format_redactions(removed)})", to_stderr=True)


def report_error(error: CycloptsError | NewtonError, argv: Sequence[str]) -> int:
    """Print an expected error, as JSON if `argv` contains --json, and return the exit status of its error code."""
    known = to_input_error(error) if isinstance(error, CycloptsError) else error
    status = get_error_status(known.code).exit_code
    print_error(known, status, as_json="--json" in argv)
    return status
