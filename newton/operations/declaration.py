"""The declaration of an operation, and the table of all operations, from which each interface derives its form."""

import pkgutil
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack, get_args, get_type_hints

from pydantic import Field, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from newton import operations
from newton.heart.speakers import Act, TargetStatement
from newton.operations.groups import GROUPS_BY_PACKAGE

if TYPE_CHECKING:
    from newton.agent.inputs import ToolInput

# What an operation does to stored rows: it reads them, adds some, changes some, or takes away what they say or do.
OperationEffect = Literal["reads", "adds", "changes", "destroys"]
OperationScope = Literal["read", "write", "admin"]
Door = Literal["cli", "http", "mcp", "client", "chat"]
TARGET = "memory_id"  # the parameter that names the statement which an operation changes

SCOPES: Mapping[OperationEffect, OperationScope] = {
    "reads": "read",
    "adds": "write",
    "changes": "write",
    "destroys": "admin",
}
EXAMPLE = "Example:"
EACH_FIELD = "each field"  # marks a parameter that is a model of which each field is a parameter of the operation
CREATED = 201
_PATH_FIELD = re.compile(r"{(\w+)}")
_SENTENCE = re.compile(r"(.+?[.?!])(?:\s|$)", re.DOTALL)


class OperationOptions(TypedDict, total=False):
    """Options of a declaration, besides route and effect.

    `name` is the public name, by default that of the function. `command` are the words of the command. `absent` maps a
    door (interface) that does not offer the operation to the reason. `scope` is that of the token, if the effect does
    not say it. `text` renders the result for people, of a list each item. Of a list, `empty` is its text without items,
    and `advice` follows the items; both may name commands as `newton ...`. `table` renders the items of a list
    together, for a terminal with a number of columns. `notices` are lines on the result that a command prints on
    standard error. `searches` says that it waits for memory until the deadline of the call, which the caller may set.
    `is_idempotent` says that a repeated call changes nothing more. `question` is what the command asks before it runs,
    unless --yes is given. `names_commands` says that texts in the result name commands, which each interface replaces
    by its own names. `field_scopes` are the scopes that a token needs for some parameters, if they are given. `core`
    are the parameters of its tool in the core set, which MCP offers by default; without it, the tool is only in the set
    of its group. `prepare` is called with the input outside the transaction of a write, so that it may call a model;
    the function gets its result as its second parameter. `report` is called with the result of a write after its
    transaction and the processing of new text, and with why the text could not be embedded. It returns the result with
    what may not be stored as the response of a request, such as text of a person. `job` is the job that the daemon
    queues after a write in place of that which embeds new text. `proposes_rules` says that the rules in its input wait
    for the approval of a person. `act` is what a write does to what persons have said; `list_targets` returns the ids
    of the statements that it changes, if they are not its parameter `memory_id`, or what is no memory as a statement.
    `inner_acts` are acts that it authorizes by itself for some values of its input.
    """

    name: str
    command: str
    absent: Mapping[Door, str]
    scope: OperationScope
    text: Callable[[Any], str]
    table: Callable[[Any, int | None], str]
    notices: Callable[[Any], Iterable[str]]
    empty: str
    advice: str
    is_idempotent: bool
    searches: bool
    question: str
    names_commands: bool
    field_scopes: Mapping[str, OperationScope]
    core: Sequence[str]
    prepare: Callable[..., Awaitable[Any]]
    report: Callable[..., Awaitable[Any]]
    job: str
    proposes_rules: bool
    act: Act
    inner_acts: Sequence[Act]
    list_targets: Callable[..., Awaitable[Sequence[str | TargetStatement]]]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: its public name, route, effect on stored rows, and the function that runs it.

    The parameters of the function after the caller (and after what was prepared) are the input, its return type is the
    result, and its docstring is the help, of which the paragraphs that begin with `Example:` are shown for the command
    only.
    """

    name: str
    method: str
    route: str
    effect: OperationEffect
    run: Callable[..., Awaitable[Any]]
    options: OperationOptions = field(default_factory=OperationOptions)

    @property
    def path(self) -> str:
        """The route without converters: a value of `{name:path}` may contain a slash."""
        return self.route.replace(":path", "")

    @property
    def noun(self) -> str:
        """The first word of the route, which groups operations in the documentation."""
        return self.path.split("/")[2]

    @property
    def group(self) -> str:
        """The group of the package that declares it."""
        return GROUPS_BY_PACKAGE[self.run.__module__.removeprefix(f"{operations.__name__}.").partition(".")[0]]

    @property
    def scope(self) -> OperationScope:
        return self.options.get("scope", SCOPES[self.effect])

    @property
    def act(self) -> Act:
        """Return the act, which decides who may do it."""
        return self.options.get("act", "work" if self.effect == "reads" else "state")

    @property
    def status(self) -> int:
        """The HTTP status of success."""
        return CREATED if self.effect == "adds" else 200

    @property
    def command(self) -> str | None:
        """The words of the command; None if the command line does not offer the operation."""
        return self.options.get("command")

    @property
    def is_idempotent(self) -> bool:
        return self.effect == "reads" or self.options.get("is_idempotent", False)

    @property
    def searches(self) -> bool:
        return self.options.get("searches", False)

    def is_at(self, door: Door) -> bool:
        """Return whether a door (an interface, such as MCP or the command line) offers the operation."""
        return door not in self.options.get("absent", {})

    @cached_property
    def description(self) -> str:
        """The help without examples, its paragraphs separated by empty lines."""
        paragraphs = [" ".join(one.split()) for one in (self.run.__doc__ or "").split("\n\n")]
        return "\n\n".join(one for one in paragraphs if one and not one.startswith(EXAMPLE))

    @property
    def summary(self) -> str:
        """The first sentence of the help."""
        found = _SENTENCE.match(self.description)
        return found[1] if found else self.description

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of the parameters by name, and of the result as `return`."""
        found = get_type_hints(self.run, localns={"OperationCaller": object}, include_extras=True)
        for name, one in signature(self.run).parameters.items():
            if one.kind is Parameter.VAR_KEYWORD:
                found |= get_type_hints(get_args(found[name])[0], include_extras=True)
            elif EACH_FIELD in get_args(found.get(name)):
                fields = get_args(found[name])[0].model_fields
                found |= {field: _to_hint(info) for field, info in fields.items()}
        return found

    @cached_property
    def models(self) -> "Mapping[str, type[ToolInput]]":
        """The models of which each field is a parameter, by the name that the function has for them."""
        return {name: get_args(hint)[0] for name, hint in self.hints.items() if EACH_FIELD in get_args(hint)}

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of the input by name; those that are keyword-only are options of the command.

        Those that several operations share are the fields of a TypedDict, all of which may be left out, or of a model.
        """
        own = list(signature(self.run).parameters.values())[2 if "prepare" in self.options else 1 :]
        shared = [get_args(self.hints[one.name])[0] for one in own if one.kind is Parameter.VAR_KEYWORD]
        found = dict[str, Parameter]()
        for one in own:
            if one.name in self.models:
                found |= _list_parameters(self.models[one.name])
            elif one.kind is not Parameter.VAR_KEYWORD:
                found[one.name] = one
        fields = [name for one in shared for name in get_type_hints(one)]
        return found | {name: Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in fields}

    def bind(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function for these values of the input; fields of a model become this model."""
        given = dict(fields)
        for name, model in self.models.items():
            given[name] = model.model_construct(**{field: given.pop(field) for field in model.model_fields})
        return given

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, one in self.parameters.items() if one.default is Parameter.empty)

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters that are words of a command, of which the last may be optional."""
        return tuple(name for name, one in self.parameters.items() if one.kind is not Parameter.KEYWORD_ONLY)

    @property
    def path_fields(self) -> tuple[str, ...]:
        return tuple(_PATH_FIELD.findall(self.path))

    def build_model(self, *, without: tuple[str, ...] = ()) -> "type[ToolInput]":
        """Return a pydantic model of the input, `without` some of its fields."""
        fields: dict[str, Any] = {
            name: (self.hints[name], ... if one.default is Parameter.empty else one.default)
            for name, one in self.parameters.items()
            if name not in without
        }
        # it loads slowly, and help needs no model
        base: type[ToolInput] = import_module("newton.agent.inputs").ToolInput
        title = "".join(word.capitalize() for word in self.name.split("_"))
        return create_model(f"{title}Input", __base__=base, __doc__=self.description, **fields)

    @cached_property
    def input_model(self) -> "type[ToolInput]":
        return self.build_model()

    @cached_property
    def result_type(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.hints["return"])


def _to_hint(info: FieldInfo) -> Any:
    """Return the type of a field of a model with its checks and its description, but without its default."""
    annotated: Any = Annotated
    return annotated[info.annotation, *info.metadata, Field(description=info.description, examples=info.examples)]


def _list_parameters(model: "type[ToolInput]") -> dict[str, Parameter]:
    """Return the fields of a model as parameters; those that are required may be given by position."""
    return {
        name: Parameter(name, Parameter.POSITIONAL_OR_KEYWORD)
        if info.is_required()
        else Parameter(name, Parameter.KEYWORD_ONLY, default=info.default)
        for name, info in model.model_fields.items()
    }


OPERATIONS: dict[str, Operation] = {}


def operation(
    route: str, effect: OperationEffect, **options: Unpack[OperationOptions]
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]:
    """Declare the decorated function as an operation with a route, such as `POST /v1/censors`, and an effect."""
    method, address = route.split()

    def register(run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        name = options.get("name", run.__name__)
        OPERATIONS[name] = Operation(name=name, method=method, route=address, effect=effect, run=run, options=options)
        return run

    return register


@cache
def load_operations() -> Mapping[str, Operation]:
    """Return all operations by name, after the modules in the packages of nouns are imported.

    They are in the order of their modules, whichever of these was imported first.
    """
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        import_module(module.name)
    return dict(sorted(OPERATIONS.items(), key=lambda one: one[1].run.__module__))
