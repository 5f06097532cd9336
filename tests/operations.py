"""Every operation of every interface in one table, derived from what the interfaces offer and what the matrix says."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from cyclopts import App

from newton.runtime.cli.app import build_app
from newton.runtime.dashboard.routes import PAGES
from newton.runtime.interface_matrix import Effect, load_verbs
from newton.runtime.mcp.resources import PROMPTS, RESOURCES, TEMPLATES
from newton.runtime.tools.tool_registry import TOOLS
from tests.docs.reference import describe_api

Schema = Mapping[str, Any]


class Parameter(NamedTuple):
    """An input of an operation: its name, the JSON schema of its value, and how it is passed.

    `place` is "path", "query" or "body" of HTTP, the option (`--limit`) or the name of a positional argument of a
    command, and empty for a tool.
    """

    name: str
    schema: Schema
    is_required: bool
    place: str = ""


class Operation(NamedTuple):
    """One operation of one interface. `method` and `path` are those of HTTP and of the dashboard."""

    interface: str
    name: str
    verb: str
    effect: Effect
    parameters: tuple[Parameter, ...]
    method: str = ""
    path: str = ""

    @property
    def required(self) -> list[Parameter]:
        """The inputs without which it is refused."""
        return [one for one in self.parameters if one.is_required]

    @property
    def options(self) -> list[Parameter]:
        """The inputs that may be left out."""
        return [one for one in self.parameters if not one.is_required]


@cache
def list_operations() -> list[Operation]:
    """All operations. Raises KeyError for one that the matrix does not classify."""
    return [*_list_routes(), *_list_tools(), *_list_commands(), *_list_pages(), *_list_slash_commands()]


def _classify(interface: str) -> Mapping[str, tuple[str, Effect]]:
    """The verb and the effect by each name in an interface."""
    return {name: (row.name, row.get_effect(name)) for row in load_verbs() for name in row.names(interface)}


def _list_routes() -> Iterator[Operation]:
    spec, known = describe_api(), _classify("http")
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            name = operation["operationId"]
            given = [
                Parameter(one["name"], one["schema"], one.get("required", False), one["in"])
                for one in operation.get("parameters", ())
                if one["in"] != "header"
            ]
            yield Operation("http", name, *known[name], (*given, *_read_body(spec, operation)), method.upper(), path)


def _read_body(spec: Schema, operation: Schema) -> Iterator[Parameter]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    model: Schema = resolve(spec, content)
    for name, schema in model.get("properties", {}).items():
        yield Parameter(name, resolve(spec, schema), name in model.get("required", ()), "body")


def resolve(spec: Schema, schema: Schema) -> Schema:
    """The schema to which a reference refers, without `null`."""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if options:
        return resolve(spec, options[0])
    if (ref := schema.get("$ref")) is None:
        return schema
    parts = ref.removeprefix("#/").split("/")
    for part in parts:
        spec = spec[part]
    return spec


def _list_tools() -> Iterator[Operation]:
    known = _classify("mcp")
    for name, tool in TOOLS.items():
        schema = tool.schema
        yield Operation("mcp", name, *known[name], _read_fields(schema))
    for kind in (*RESOURCES, *TEMPLATES):
        yield Operation("resource", kind.uri, *known[kind.tool], ())
    for name, prompt in PROMPTS.items():
        fields = _read_fields(prompt.input_model.model_json_schema())
        yield Operation("prompt", name, *known[PROMPT_TOOLS[name]], fields)


# The tool with whose result a prompt begins.
PROMPT_TOOLS = {"with-memory": "context", "review-decisions": "decisions"}


def _read_fields(schema: Schema) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name, resolve(schema, one), name in schema.get("required", ()))
        for name, one in schema.get("properties", {}).items()
    )


def _list_commands() -> Iterator[Operation]:
    known = _classify("cli")
    for name, app in walk_commands(build_app()):
        yield Operation("cli", name, *known[name], tuple(_read_arguments(app)))


def walk_commands(app: App, before: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Each command with its words."""
    for name in app:
        if name.startswith("-"):
            continue
        inner = app[name]
        if any(not one.startswith("-") for one in inner):
            yield from walk_commands(inner, (*before, name))
        else:
            yield " ".join((*before, name)), inner


def _read_arguments(app: App) -> Iterator[Parameter]:
    for argument in app.assemble_argument_collection():
        name = next((one for one in argument.names if one != "*"), None)
        if name is not None:
            known = name.lstrip("-").replace("-", "_").lower()
            yield Parameter(known, _describe_type(argument.hint), bool(argument.required), name)


def _describe_type(hint: Any) -> Schema:
    """A JSON schema of the type of an argument, as far as a value is made of it."""
    origin = get_origin(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin in (Union, UnionType):
        return _describe_type(next(one for one in get_args(hint) if one is not type(None)))
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": _describe_type(get_args(hint)[0])}
    if not inspect.isclass(hint):
        return {"type": "string"}
    names: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number"}
    if issubclass(hint, datetime):
        return {"type": "string", "format": "date-time"}
    return {"type": "string", "format": "path"} if issubclass(hint, Path) else {"type": names.get(hint, "string")}


def _list_pages() -> Iterator[Operation]:
    """The pages of the dashboard: to look at one reads, and a form does what the operation of its name does."""
    known = _classify("http")
    for module in PAGES:
        verb = module.__name__.rpartition(".")[2]
        for method, path, page in module.ROUTES:
            effect: Effect = "reads" if method == "GET" else known.get(page.__name__, ("", "adds"))[1]
            names = [part.strip("{}").removesuffix(":path") for part in path.split("/") if part.startswith("{")]
            given = tuple(Parameter(name, {"type": "string"}, True, "path") for name in names)
            yield Operation("dashboard", page.__name__, verb, effect, given, method, path)


def _list_slash_commands() -> Iterator[Operation]:
    for name, (verb, effect) in _classify("chat").items():
        yield Operation("chat", name, verb, effect, ())
