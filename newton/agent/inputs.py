"""Inputs shared by the HTTP API, MCP and the tools of the model: one pydantic model for each action.

The docstring of an input is the description of the tool that takes it. HTTP requests add fields that only programs may
set, such as times and references.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from newton.agent.field_types import CleanText
from newton.content.validation_messages import describe_problem, select_problem, suggest_field
from newton.errors import InputError
from newton.memory.lookup import MAX_PAGE_CHARS, PAGE_CHARS
from newton.memory.memory import Kind


class ToolInput(BaseModel):
    """Base class of all inputs. A field that is not defined is rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def all_text(self) -> str:
        """Return all strings of the input, one per line. Censors are checked against this text."""
        return "\n".join(self.iter_texts())

    def iter_texts(self) -> Iterator[str]:
        """Yield all strings of the input, also those in lists, and the keys and values of objects."""
        return _iter_texts(self)


Input = TypeVar("Input", bound=ToolInput)


def parse_json(model: type[Input], arguments: str, *, hint: str) -> Input:
    """Parse a JSON text as an input. Raises InputError, which names one invalid field and ends with `hint`."""
    try:
        return model.model_validate_json(arguments)
    except ValidationError as error:
        problem = select_problem(error.errors())
        field = ".".join(map(str, problem["loc"])) or "the arguments"
        what = f"{field}: {describe_problem(problem)}."
        raise InputError(what, hint=f"{suggest_field(problem, model)} {hint}".strip()) from None


class RecallInput(ToolInput):
    """Search the memory: conversations, facts, episodes, procedures, documents, decisions. Use it for information that
    is missing in the context. Each result has an id; `expand` shows the memory with this id in full."""

    query: CleanText = Field(description="The question or topic, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="Maximum number of results.")
    kinds: list[Kind] | None = Field(
        None,
        min_length=1,
        description="Search only memories of these kinds. `event` includes the results of tools, which are data only.",
    )
    min_relevance: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Minimum probability that a message, fact or passage answers the query; 0 for the nearest memories"
        " whatever they say. Default: the minimum for a context.",
    )


class ExpandInput(ToolInput):
    """Read one memory in full by its id, with its state, source, date and trust. A long text comes in pages: each
    result says how many characters are left, and at which offset the next page begins."""

    memory_id: str = Field(
        description="The number after `#` in a context, or the id of a result; the last characters of an id are enough."
    )
    offset: int = Field(0, ge=0, description="The position of the first character to return.")
    limit: int = Field(PAGE_CHARS, ge=1, le=MAX_PAGE_CHARS, description="Maximum number of characters of the page.")


def _iter_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case BaseModel():
            yield from _iter_texts([getattr(value, name) for name in type(value).model_fields])
        case _ if is_dataclass(value):
            yield from _iter_texts([getattr(value, one.name) for one in fields(value)])
        case dict():
            yield from _iter_texts([*value, *value.values()])  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case list() | tuple():
            for item in value:  # pyright: ignore[reportUnknownVariableType]  # JSON
                yield from _iter_texts(item)  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case _:
            return
