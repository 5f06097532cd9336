"""The commands of all operations, each derived from its declaration."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from importlib import import_module
from inspect import Parameter, Signature
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Union, get_args, get_origin

import cyclopts

from newton.runtime.cli.command_context import current_terminal, require_own_process
from newton.runtime.cli.command_index import OPERATIONS_PACKAGE
from newton.runtime.cli.options import (
    AgentOption,
    EndTime,
    JsonOption,
    StartTime,
    TimeoutOption,
    YesOption,
    load_settings,
    require_yes,
    start_deadline,
)
from newton.runtime.cli.printing import print_notice, say, to_json

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from newton.operations.declaration import Operation

ORIGIN = "cli"
END = "until"  # of the name of a time that ends a period
TOKEN = "token"  # the parameter that confirms a preview
_COMMON = {"agent": (AgentOption, None), "json": (JsonOption, False)}
_CONFIRMED = {"yes": (YesOption, False)}  # of what asks
_TIMED = {"timeout": (TimeoutOption, None)}  # of what searches


def __getattr__(path: str) -> Callable[..., Awaitable[int]]:
    """Return the command function of an operation: `rules.censors.add_censor` names a function of a module."""
    module, _, function = path.rpartition(".")
    if not module:
        raise AttributeError(path)
    return build_command(import_module(f"{OPERATIONS_PACKAGE}.{module}"), function)


class CommandOptions(NamedTuple):
    """The options of a command that are no input of its operation. With `says_yes`, it does not ask to confirm.

    `timeout` is the number of seconds for the search of memory; None is the default.
    """

    agent: str | None
    as_json: bool
    says_yes: bool
    timeout: float | None = None


def build_command(module: object, function: str) -> Callable[..., Awaitable[int]]:
    """Return the command of an operation: a function whose parameters are the arguments and options.

    `function` is the name of the operation's function in `module`. The command returns its exit status.
    """
    from newton.operations.declaration import OPERATIONS  # noqa: PLC0415 (slow)

    declared = getattr(module, function)
    operation = next(one for one in OPERATIONS.values() if one.run is declared)
    question = operation.options.get("question")
    asks = bool(question) or TOKEN in operation.parameters

    async def command(*args: Any, **fields: Any) -> int:
        bound = signature.bind(*args, **fields)
        bound.apply_defaults()
        given = dict(bound.arguments)
        options = CommandOptions(given["agent"], given["json"], given.get("yes", False), given.get("timeout"))
        if question:
            require_yes(question, yes=options.says_yes)
        return await _run(operation, to_arguments(operation, given), options)

    parameters = [_to_parameter(operation, option, path) for option, path in list_options(operation).items()]
    added = _COMMON | (_CONFIRMED if asks else {}) | (_TIMED if operation.searches else {})
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]
    signature = Signature(parameters)
    command.__signature__ = signature  # pyrefly: ignore[missing-attribute]  # cyclopts reads it
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__name__, command.__doc__ = function, declared.__doc__
    return command


def list_options(operation: "Operation") -> dict[str, tuple[str, ...]]:
    """Return, for each argument and option of a command, its place in the input of the operation.

    The place is the name of a parameter, or the name of a parameter that is a model and one of its fields.
    """
    options = dict[str, tuple[str, ...]]()
    for name in operation.parameters:
        fields = _list_fields(operation.hints[name])
        for field, info in fields.items():
            is_list = get_origin(unwrap(info.annotation)) is list
            own = _find_own_name(info.metadata)
            options[own or (field.removesuffix("s") if is_list else field)] = (name, field)
        if not fields:
            options[_to_option(operation, name)] = (name,)
    return options


def _list_fields(hint: Any) -> "Mapping[str, FieldInfo]":
    """Return the fields of a parameter that is a model, which may be left out."""
    plain = unwrap(hint)
    fields: Sequence[Mapping[str, FieldInfo]]
    fields = [one.model_fields for one in (plain, *get_args(plain)) if hasattr(one, "model_fields")]
    return fields[0] if fields else {}


def to_arguments(operation: "Operation", given: Mapping[str, object]) -> dict[str, Any]:
    """Return the input of an operation, by parameter, from the values that its command was given.

    Empty fields of a parameter that is a model are left out.
    """
    arguments: dict[str, Any] = {name: {} for name in operation.required if _list_fields(operation.hints[name])}
    for option, (name, *inner) in list_options(operation).items():
        if inner:
            if given.get(option) not in (None, [], ()):
                arguments.setdefault(name, {})[inner[0]] = given[option]
        elif option in given:
            arguments[name] = given[option]
    return arguments


def _to_option(operation: "Operation", name: str) -> str:
    """Return the name of a parameter in a command: that of its CommandOption; else an id by what it identifies, and a
    list that is a field of a model by one item.
    """
    own = _find_own_name(get_args(operation.hints[name]))
    is_field = any(name in model.model_fields for model in operation.models.values())
    if is_field and get_origin(unwrap(operation.hints[name])) is list:
        return name.removesuffix("s")
    return own or ("confirm" if name == TOKEN else name.removesuffix("_id"))


def _find_own_name(metadata: Sequence[object]) -> str | None:
    from newton.operations.fields import CommandOption  # noqa: PLC0415 (slow)

    return next((one.name.replace("-", "_") for one in metadata if isinstance(one, CommandOption)), None)


def _to_parameter(operation: "Operation", option: str, path: tuple[str, ...]) -> Parameter:
    """Return an argument or option, whose place in the operation's input is `path`, as a parameter for cyclopts."""
    name, *inner = path
    declared, hint = operation.parameters[name], operation.hints[name]
    default, is_option = declared.default, declared.kind is Parameter.KEYWORD_ONLY
    infos: list[FieldInfo] = [one for one in get_args(hint) if getattr(one, "description", None)]
    if inner:
        infos = [_list_fields(hint)[inner[0]]]
        declared_type: Any = infos[0].annotation
        is_required = infos[0].is_required()  # of a model that may be left out
        hint, default = (declared_type | None, None) if is_required else (declared_type, infos[0].default)
    plain = unwrap(hint)
    is_switch = plain == bool | None or default is True  # `--core` and `--no-core`
    described = cyclopts.Parameter(help=infos[-1].description, negative=None if is_switch else ())
    time = (EndTime if option.endswith(END) else StartTime,) if datetime in (plain, *get_args(plain)) else ()
    kind = Parameter.KEYWORD_ONLY if is_option else Parameter.POSITIONAL_OR_KEYWORD
    return Parameter(option, kind, default=default, annotation=Annotated[plain, *time, described])


def unwrap(hint: Any) -> Any:
    """Return a type without its checks, which the operation applies itself.

    >>> unwrap(Annotated[tuple[Annotated[str, "not empty"], ...] | None, "names"])
    list[str] | None
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        plain = unwrap(parts[0])
        return list[str] | None if _find_own_name(parts) and _reads_text(plain) else plain
    if origin in (Union, UnionType):
        return reduce(lambda left, right: left | right, map(unwrap, parts))
    if origin not in (tuple, list, Sequence):
        return hint
    item = unwrap(parts[0])
    return GenericAlias(list, (str if hasattr(item, "model_fields") else item,))  # a model reads its text


def _reads_text(plain: Any) -> bool:
    """Return whether a type is a model, which may be left out: with an option of its own, it reads a list of texts."""
    return any(hasattr(one, "model_fields") for one in (plain, *get_args(plain)))


async def _run(operation: "Operation", arguments: Mapping[str, object], options: CommandOptions) -> int:
    from newton.operations.caller import OperationCaller  # noqa: PLC0415 (slow)
    from newton.operations.runner import (  # noqa: PLC0415 (slow)
        format_result,
        list_notices,
        parse_arguments,
        run_operation,
        to_data,
    )
    from newton.runtime.cli import formatting  # noqa: PLC0415 (slow)
    from newton.runtime.cli.command_agent import open_agent  # noqa: PLC0415 (slow)
    from newton.runtime.cli.progress import print_progress  # noqa: PLC0415 (slow)

    given = parse_arguments(operation, arguments)
    # without its token, the operation only returns a preview with the token that the second call sends
    is_preview = TOKEN in arguments and arguments[TOKEN] is None and (options.says_yes or not options.as_json)
    if is_preview and not options.says_yes and current_terminal().asks():
        require_own_process()
    on_new_agent = None if operation.effect == "reads" else formatting.print_new_agent
    async with open_agent(load_settings(options.agent), on_new_agent=on_new_agent) as newton:
        caller = OperationCaller(
            newton=newton,
            origin=ORIGIN,
            speaker="person",
            deadline=start_deadline(options.timeout),
            on_event=print_progress,
        )
        result = (await run_operation(operation, given, caller)).result
        if is_preview:
            if not options.says_yes:
                print_notice(format_result(operation, result))
            require_yes("Go ahead?", yes=options.says_yes)
            confirmed = parse_arguments(operation, {**arguments, TOKEN: result.token})
            result = (await run_operation(operation, confirmed, caller)).result
    if options.as_json:
        say(to_json(to_data(operation, result)))
        return getattr(result, "exit_status", 0)
    say(format_result(operation, result, columns=current_terminal().columns()))
    for notice in list_notices(operation, result):
        print_notice(notice)
    if following := getattr(result, "next", None):
        print_notice(f"\nMore: the same command with --cursor {following}")
    return getattr(result, "exit_status", 0)
