"""Collect every parameter and result name of the command line, HTTP, MCP and the client, with its meaning, once."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from cyclopts import App

from newton.client import Client
from newton.runtime.cli.app import build_app
from newton.runtime.tools.tool_registry import TOOLS

INTERFACES = ("command line", "HTTP", "MCP", "client")
MAX_MEANINGS = 3  # meanings that a row gives
MAX_PLACES = 3  # places that a row names for one interface
REF = "#/components/schemas/"
PLUMBING = {"get", "get_items", "post", "request", "stream", "unreachable_error"}  # methods that any route uses
CLIENT_MEANINGS = {
    "self": "",
    "fields": "Further fields of the request, as the HTTP route names them.",
    "filters": "Filters, as the parameters of the HTTP route.",
    "idempotency_key": "An idempotency key. A call repeated with it within a day has no second effect.",
    "after": "The number of the last event that was received.",
    "keep": "How the conflict is settled: newer, older, both or same.",
    "path": "The path of an HTTP route.",
    "params": "The query parameters of an HTTP route.",
}


@dataclass
class NamedParameter:
    """A name with its meanings, each with the first place that has it, and the places where each interface uses it."""

    name: str
    meanings: dict[str, str] = field(default_factory=dict[str, str])
    places: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, interface: str, place: str, meaning: str = "") -> None:
        """Add a place and its meaning."""
        known = self.places.setdefault(interface, [])
        if place not in known:
            known.append(place)
        if meaning:
            self.meanings.setdefault(meaning, place)

    @property
    def meaning(self) -> str:
        """Return the first meaning, and others with the place that has them."""
        first, *others = self.meanings.items() or [("", "")]
        more = [f"`{place}`: {meaning}" for meaning, place in others[: MAX_MEANINGS - 1]]
        return " ".join([first[0], *more])

    def cell(self, interface: str) -> str:
        """Return the places of one interface for a table."""
        known = self.places.get(interface, [])
        more = f" and {len(known) - MAX_PLACES} more" if len(known) > MAX_PLACES else ""
        return ", ".join(f"`{place}`" for place in known[:MAX_PLACES]) + more


def collect_parameters(spec: Mapping[str, Any]) -> list[NamedParameter]:
    """Return the names of parameters, sorted. The input models come first: they describe most precisely."""
    return _collect([*_tools(), *_routes(spec), *_commands(build_app()), *_methods()])


def collect_results(spec: Mapping[str, Any]) -> list[NamedParameter]:
    """Return the names in the results of HTTP, sorted."""
    return _collect(_results(spec))


def _collect(uses: Iterable["Use"]) -> list[NamedParameter]:
    found: dict[str, NamedParameter] = {}
    for interface, name, place, meaning in uses:
        found.setdefault(name, NamedParameter(name)).add(interface, place, meaning)
    return [found[name] for name in sorted(found)]


Use = tuple[str, str, str, str]  # interface, name, place, meaning


def _tools() -> Iterator[Use]:
    for tool, model in TOOLS.items():
        for name, info in model.input_model.model_fields.items():
            yield "MCP", name, tool, info.description or ""


def _routes(spec: Mapping[str, Any]) -> Iterator[Use]:
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            if "openai" in operation["tags"]:
                continue  # its names are those of OpenAI
            place = f"{method.upper()} {path}"
            for one in operation.get("parameters", ()):
                yield "HTTP", one["name"], place, one.get("description") or one["schema"].get("description", "")
            yield from _fields(spec, operation.get("requestBody", {}), place)


def _results(spec: Mapping[str, Any]) -> Iterator[Use]:
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            if "openai" not in operation["tags"]:
                answers = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
                yield from _fields(spec, answers, f"{method.upper()} {path}")


def _fields(spec: Mapping[str, Any], node: object, place: str) -> Iterator[Use]:
    """Yield the properties of all schemas to which a part of the description refers, each schema once."""
    pending, seen = list(_refs(node)), set[str]()
    while pending:
        if (ref := pending.pop(0)) in seen:
            continue
        seen.add(ref)
        schema = spec["components"]["schemas"][ref.removeprefix(REF)]
        for name, one in schema.get("properties", {}).items():
            yield "HTTP", name, place, one.get("description") or _field_of(schema)
        pending += _refs(schema)


def _field_of(schema: Mapping[str, Any]) -> str:
    """Return the meaning of a field that has none of its own: the object that it is part of."""
    about = schema.get("description", "").partition(". ")[0].partition("\n")[0].rstrip(".")
    return f"Of `{schema['title']}`: {about}." if about else f"Of `{schema['title']}`."


def _refs(node: Any) -> Iterator[str]:
    match node:
        case {"$ref": str(ref)}:
            yield ref
        case dict():
            for one in cast("dict[str, Any]", node).values():
                yield from _refs(one)
        case list():
            for one in cast("list[Any]", node):
                yield from _refs(one)
        case _:
            return


def _commands(app: App, before: tuple[str, ...] = ()) -> Iterator[Use]:
    for name in app:
        if name.startswith("-"):
            continue
        inner = app[name]
        if any(not one.startswith("-") for one in inner):
            yield from _commands(inner, (*before, name))
            continue
        for argument in inner.assemble_argument_collection():
            for option in argument.names:
                if option and option != "*" and not option.startswith("--no-"):
                    meaning = argument.parameter.help or ""
                    yield "command line", _to_name(option), " ".join((*before, name)), meaning


def _to_name(option: str) -> str:
    """
    >>> _to_name("--created-since"), _to_name("MEMORY")
    ('created_since', 'memory')
    """
    return option.lstrip("-").replace("-", "_").lower()


def _methods() -> Iterator[Use]:
    for method, function in inspect.getmembers(Client, inspect.isfunction):
        if method.startswith("_") or method in PLUMBING:
            continue
        for name in inspect.signature(function).parameters:
            if name != "self":
                yield "client", name, method, CLIENT_MEANINGS.get(name, "")
