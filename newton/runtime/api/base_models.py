"""Base classes of request and response models, and the query parameters of list endpoints."""

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from newton.runtime.tools.views import ViewModel

Item = TypeVar("Item")

ORIGIN = "http"  # the origin of everything that is written over HTTP
MAX_PAGE_SIZE = 200


def with_example(**fields: JsonValue) -> ConfigDict:
    """Return a pydantic configuration that adds an example with these fields to the OpenAPI schema."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class RequestModel(BaseModel):
    """The base class of request bodies; unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ResponseModel(ViewModel):
    """The base class of response bodies."""


class ItemList(ResponseModel, Generic[Item]):
    """A complete list of items, without pages."""

    items: Sequence[Item]


class CursorPage(ResponseModel, Generic[Item]):
    """One page of a list. `next` is the cursor for the next page; it is null on the last page."""

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


def describe_event_stream(description: str, *, example: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of an endpoint that streams server-sent events."""
    event = {
        "type": "object",
        "description": "One event of the stream.",
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
        "required": ["data"],
    }
    return {200: {"description": description, "content": {"text/event-stream": {"schema": event, "example": example}}}}


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")]
Cursor = Annotated[
    str | None,
    Query(max_length=500, description="The cursor of the page: `next` of the previous page. Default: the first page."),
]
