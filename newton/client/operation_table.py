"""The routes and parameters of the operations that the client calls by name, from a generated file."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from inspect import Parameter, Signature
from typing import NamedTuple, Self

from .response_types import encode_segment

KEY = "idempotency_key"
TIMEOUT = "timeout_seconds"


class ClientOperation(NamedTuple):
    """An operation (function) of the daemon's API. The `required` parameters may be given by position.

    If it `searches` memory, the caller can limit the time with `timeout_seconds`."""

    method: str
    path: str
    help: str
    required: list[str]
    optional: list[str]
    searches: bool = False

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def signature(self) -> Signature:
        """Return the signature of the client's method that calls the operation."""
        optional = [*self.optional, *([TIMEOUT] if self.searches else []), *([KEY] if self.writes else [])]
        parameters = [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            *(Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self.required),
            *(Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in optional),
        ]
        return Signature(parameters)

    def fill_path(self, given: Mapping[str, object]) -> str:
        in_path = {name: encode_segment(str(value)) for name, value in given.items() if f"{{{name}}}" in self.path}
        return self.path.format(**in_path)

    def select_fields(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments that are sent in the query or the body: those that are neither in the path nor None."""
        return {name: one for name, one in given.items() if f"{{{name}}}" not in self.path and one is not None}

    @classmethod
    def load(cls) -> Mapping[str, Self]:
        text = files(__name__.rpartition(".")[0]).joinpath("operations.json").read_text(encoding="utf-8")
        return {name: cls(**fields) for name, fields in json.loads(text).items()}


@cache
def load_client_operations() -> Mapping[str, ClientOperation]:
    """Return the operations of the daemon's API by name, from the generated file."""
    return ClientOperation.load()
